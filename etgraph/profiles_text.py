"""A profile in words and columns, for terminals."""

from __future__ import annotations

from etgraph.profiles import KernelTime, MethodProfile, Profile
from etgraph.words import size

__all__ = ["profile_text"]

#: As many kernels and holders are shown; the JSON form has all.
_SHOWN = 25
_HOLDERS = 6


def profile_text(found: Profile) -> str:
    """Show what was found of each method, and what is not known."""
    lines = [f"{found.runs} runs on {found.inputs}; program of {size(found.program_bytes)}"]
    for method in found.methods.values():
        lines += ["", *_method_lines(method)]
    if found.notes:
        lines += ["", *(f"note: {note}" for note in found.notes)]
    return "\n".join(lines)


def _method_lines(method: MethodProfile) -> list[str]:
    calls = [kernel for kernel in method.kernels if not kernel.inside]
    lines = [
        f"method {method.method}: {method.run_milliseconds:.4g} ms a run, {method.load_milliseconds:.4g} ms to load",
        "       ms   share  kernel",
    ]
    shown = sorted(calls, key=lambda kernel: -kernel.milliseconds)[:_SHOWN]
    for kernel in sorted(shown, key=lambda kernel: kernel.instruction):
        lines.append(_kernel_line(kernel))
        inner = [one for one in method.kernels if one.inside and one.instruction == kernel.instruction]
        lines += [_kernel_line(one) for one in sorted(inner, key=lambda one: -one.milliseconds)[:_SHOWN]]
    if len(calls) > len(shown):
        rest = sum(kernel.milliseconds for kernel in calls) - sum(kernel.milliseconds for kernel in shown)
        lines.append(f"{rest:9.4f}          {len(calls) - len(shown)} more")
    for arena in method.arenas:
        lines.append(
            f"memory {arena.memory_id}: {size(arena.nbytes)} planned, "
            f"{size(arena.peak_bytes)} held at the peak, {arena.peak_at}"
        )
        lines += [
            f"  {size(holder.nbytes):>9}  {holder.what}  {holder.role}{_short_lines(holder.source_lines)}"
            for holder in arena.holders[:_HOLDERS]
        ]
        if len(arena.holders) > _HOLDERS:
            rest_bytes = sum(holder.nbytes for holder in arena.holders[_HOLDERS:])
            lines.append(f"  {size(rest_bytes):>9}  {len(arena.holders) - _HOLDERS} more")
    return lines


def _kernel_line(kernel: KernelTime) -> str:
    share = f"{100 * kernel.share:5.1f} %" if kernel.share is not None else "       "
    indent = "    " if kernel.inside else ""
    return f"{kernel.milliseconds:9.4f} {share}  {indent}{kernel.name}{_short_lines(kernel.source_lines)}"


def _short_lines(source_lines: tuple[str, ...]) -> str:
    """Show the first lines as `net.py:12`."""
    places = list(
        dict.fromkeys(line.partition(" in ")[0].replace("\\", "/").rpartition("/")[2] for line in source_lines)
    )
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return f"  [{', '.join(places[:3])}{more}]" if places else ""
