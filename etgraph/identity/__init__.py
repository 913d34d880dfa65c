"""What an option, a function or a module *is*, as a digest that is the same in every process.

A cache key is a list of named parts. This package gives the parts that are not artifacts:

    describe(option)            any value, config, pass, partitioner, quantizer, callable, calibration data
    describe_module(module)     an eager nn.Module, with the state of torch that its export depends on
    describe_modules(methods)   several methods of eager modules, with what they share
    code_of(function)           a function or class with every helper that it reaches
    describe_files_of(function) a function by its file and the files that it imports: for stages
    toolchain()                 versions that enter every key
    differences(old, new)       the reason for a miss, from the parts of two descriptions

What enters, and what never does:

| enters | by |
|---|---|
| plain values | exact type and value: -0.0 is not 0.0, True is not 1; the order of a dict counts |
| tensors | dtype, shape, strides, values, requires_grad, attributes, ties within the description |
| code of the user | compiled code, defaults, closure, every global that it names, to the end |
| code of a library | distribution and version; a user's function patched into a library's class is found |
| instances | class and attributes; the same object twice is not two equal ones |
| modules | class, parameters, buffers, submodules in order, training flags, hooks, every other attribute |
| a `pathlib.Path` | its text, and the content of the file that it names; a str is only its text |
| data loaders | dataset, sampler and generator; what they give, where the dataset cannot be told |

Never: addresses, the order of a set, file names, module names of the user, line numbers, comments,
docstrings, times, what a `cached_property` has filled in.

Limits, known and accepted: a library edited in place without a new version; library functions replaced, or
functions put into a library's registry, where only the library calls them; what a custom operator that is
given as a value computes (in code that is followed it is refused); flags of libraries and environment
variables that only libraries read; numpy arrays that share memory with one another; modules imported inside
functions whose globals were changed at run time, but for functions and plain constants. A list that two
attributes share is two equal lists.

What cannot be described raises `Undescribable`, which names the part and says how to declare it: a class says
what it is by `__etgraph_fingerprint__(self)`, a function by an attribute of that name, and
`register_describer` speaks for classes of others.
"""

from etgraph.errors import Undescribable
from etgraph.identity.code import code_of
from etgraph.identity.data import materialise
from etgraph.identity.describe import describe, describe_module, describe_modules, register_describer
from etgraph.identity.description import Change, Description, differences
from etgraph.identity.files import describe_files_of
from etgraph.identity.origin import toolchain

__all__ = [
    "Change",
    "Description",
    "Undescribable",
    "code_of",
    "describe",
    "describe_files_of",
    "describe_module",
    "describe_modules",
    "differences",
    "materialise",
    "register_describer",
    "toolchain",
]
