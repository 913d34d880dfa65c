"""From eager module to exported program."""

from __future__ import annotations

import etgraph
from etgraph.artifact import Exported, Module


def _has_samples(model: Module) -> None:
    from stages.support.capture import check_samples

    check_samples(model)


@etgraph.stage(cost=1.0, check=_has_samples, reads_inputs=False)
def torch_export(
    model: Module, *, strict: bool = False, eval_mode: bool = False, dynamic_batch_size: bool = False
) -> Exported:
    """Capture each method with `torch.export.export`.

    Args:
        model: modules with at least one sample of example inputs per method.
        strict: trace with TorchDynamo; `torch.export.export` itself defaults to False.
        eval_mode: export as `model.eval()` would. The caller's module keeps its own flags in either case.
        dynamic_batch_size: let the first size of every tensor input vary, for methods that were given no dynamic
            shapes. Upstream: `QuantizationRecipe.dynamic_batch_size`, to train with batches of any size.
    """
    from stages.support.capture import capture

    programs = capture(model, strict=strict, eval_mode=eval_mode, dynamic_batch_size=dynamic_batch_size)
    return model.become(Exported, methods=programs)
