"""Which tensor is which, as torch's own analysis of memory needs to know it.

Two tensors are one where they share a ``TensorImpl`` or the memory of a storage, at any time and over any number of
steps. The hooks record addresses; here, when somebody asks, addresses become numbers, as torch numbers them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._C import _profiler as torch_types
from torch.optim import Optimizer
from torch.profiler import DeviceType

from hotspan import _core
from hotspan.profiler._module_hooks import kind_of

# By c10::ScalarType and c10::Layout; a release of torch may lack some of the latest.
_DTYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64"),
    *("complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8"),
    *("bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz"),
    *("float8_e4m3fnuz", "uint16", "uint32", "uint64"),
)
_LAYOUTS = (
    "strided",
    "sparse_coo",
    "sparse_csr",
    "_mkldnn",
    "sparse_csc",
    "sparse_bsr",
    "sparse_bsc",
    "jagged",
)
# As C++ calls them, which is how traces have them.
_TYPE_NAMES = {
    "unsigned char": "uint8",
    "signed char": "int8",
    "short int": "int16",
    "int": "int32",
    "long int": "int64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "bool": "bool",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
_DEVICES = {int(kind): name.lower() for name, kind in DeviceType.__members__.items()}


class StandIn:
    """An object that is an instance of a class of torch's, for programs that ask; a release of torch may lack it."""

    _kind: type | None = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._kind or type(self)


class TensorMetadata(StandIn):
    """A tensor at a moment, with the attributes of torch's ``_TensorMetadata``."""

    _kind = getattr(torch_types, "_TensorMetadata", None)

    def __init__(
        self,
        impl_ptr: int | None,
        storage_data_ptr: int | None,
        dtype: Any,
        layout: Any,
        device: torch.device,
        shape: tuple[list[int], list[int]],
    ) -> None:
        self.impl_ptr, self.storage_data_ptr = impl_ptr, storage_data_ptr
        self.dtype, self.layout, self.device = dtype, layout, device
        self.sizes, self.strides = shape
        self.id: int | None = None
        self.allocation_id: int | None = None

    @property
    def dim(self) -> int:
        """How many dimensions it has."""
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"<TensorMetadata {self.id} {self.dtype} {self.sizes}>"


def device_of(kind: int, index: int) -> torch.device:
    """Return the device that a trace has by numbers."""
    name = _DEVICES.get(kind, "cpu")
    return torch.device(name) if index < 0 else torch.device(name, index)


def metadata_of(tensor: Any) -> TensorMetadata | None:
    """Return what is to be known of a tensor that exists; None for what is none, or cannot tell."""
    if not isinstance(tensor, torch.Tensor):
        return None
    try:
        strides = list(tensor.stride()) if tensor.layout == torch.strided else []
        data = tensor.untyped_storage().data_ptr()
        return TensorMetadata(
            tensor._cdata,
            data,
            tensor.dtype,
            tensor.layout,
            tensor.device,
            ([int(size) for size in tensor.shape], strides),
        )
    except (AttributeError, NotImplementedError, RuntimeError):
        return None  # without storage, or a subclass that keeps to itself


class ModuleInfo(StandIn):
    """A module and its own parameters when it was first called: torch's ``_NNModuleInfo``."""

    _kind = getattr(torch_types, "_NNModuleInfo", None)

    def __init__(self, module: nn.Module) -> None:
        self.self_ptr, self.cls_ptr, self.cls_name = id(module), id(type(module)), kind_of(module)
        pairs = ((name, metadata_of(parameter), parameter) for name, parameter in module._parameters.items())
        self.parameters = [
            (name, known, metadata_of(parameter.grad))
            for name, known, parameter in pairs
            if known is not None
        ]

    def tensors(self) -> Iterator[TensorMetadata | None]:
        """All tensors of it."""
        for _name, parameter, gradient in self.parameters:
            yield from (parameter, gradient)


class OptimizerInfo(StandIn):
    """An optimizer, its parameters and their states after a step: torch's ``_OptimizerInfo``."""

    _kind = getattr(torch_types, "_OptimizerInfo", None)

    def __init__(self, optimizer: Optimizer) -> None:
        self.self_ptr = id(optimizer)
        self.parameters = [
            (known, metadata_of(parameter.grad), _states(optimizer, parameter))
            for group in optimizer.param_groups
            for parameter in group["params"]
            if (known := metadata_of(parameter)) is not None
        ]

    def tensors(self) -> Iterator[TensorMetadata | None]:
        """All tensors of it."""
        for parameter, gradient, states in self.parameters:
            yield from (parameter, gradient, *(state for _name, state in states))


def _states(optimizer: Optimizer, parameter: Any) -> list[tuple[str, TensorMetadata]]:
    states = optimizer.state.get(parameter, {})
    found = ((str(name), metadata_of(state)) for name, state in states.items())
    return [(name, known) for name, known in found if known is not None]


@dataclass
class Identities:
    """What was learned of single tensors while it recorded."""

    inputs: _core.InputTensors | None = None
    # By the name of their calls, ``Linear_0``.
    modules: dict[str, ModuleInfo] = field(default_factory=dict)
    # One for each step.
    optimizers: list[OptimizerInfo] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict)

    def saw_module(self, module: nn.Module) -> None:
        """Learn of a module that is about to be called, the first time."""
        if id(module) not in self._seen:
            self._seen.add(id(module))
            info = ModuleInfo(module)
            number = self._counts.get(info.cls_name, 0)
            self._counts[info.cls_name] = number + 1
            self.modules[f"{info.cls_name}_{number}"] = info

    def saw_step(self, optimizer: Optimizer) -> None:
        """Learn of an optimizer that has made a step."""
        self.optimizers.append(OptimizerInfo(optimizer))

    def inputs_of(self, arguments: dict[str, Any]) -> list[Any]:
        """Return the inputs of an operator: tensors, lists of tensors, scalars, and None for all else.

        Unless single tensors were told apart, one is known by its shape and type only."""
        tensors = iter(() if self.inputs is None else self.inputs.of(arguments.get("External id", 0)))
        rows = zip(
            arguments.get("Input type", ()),
            arguments.get("Input Dims", ()),
            arguments.get("Input Strides", ()),
            arguments.get("Concrete Inputs", ()),
            strict=False,
        )
        return [_input(row, tensors) for row in rows]


def _input(row: tuple[str, Any, Any, str], tensors: Iterator[Any]) -> Any:
    kind, sizes, strides, text = row
    if kind == "Scalar":
        return _core.concrete_value(text)
    if kind == "TensorList":
        return [_tensor(next(tensors, None), "", shape) for shape in zip(sizes, strides, strict=False)]
    if kind in ("", "ScalarList"):
        return None
    return _tensor(next(tensors, None), kind, (sizes, strides))


def _tensor(words: tuple[int, ...] | None, kind: str, shape: tuple[list[int], list[int]]) -> TensorMetadata:
    if words is None:
        dtype = getattr(torch, _TYPE_NAMES.get(kind, ""), None)
        return TensorMetadata(None, None, dtype, torch.strided, torch.device("cpu"), shape)
    impl, data, number, layout, device, index = words
    return TensorMetadata(
        impl, data, _named(_DTYPES, number), _named(_LAYOUTS, layout), device_of(device, index), shape
    )


def _named(names: tuple[str, ...], number: int) -> Any:
    return getattr(torch, names[number], None) if number < len(names) else None


@dataclass
class Sighting:
    """Somebody who has memory, at a moment: a tensor, or an allocator that gives or takes it."""

    # Has `id` and `allocation_id`, which are to be found.
    owner: Any
    memory: tuple[int | None, torch.device]
    impl: int | None = None
    frees: bool = False


def sighting(tensor: TensorMetadata) -> Sighting:
    """A tensor that was seen."""
    return Sighting(tensor, (tensor.storage_data_ptr, tensor.device), tensor.impl_ptr)


def number(sightings: Iterable[Sighting]) -> None:
    """Tell all owners, given in order of time, which allocation and which tensor they are."""
    seen = list(sightings)
    _number_allocations(seen)
    # Memory that was never seen as a tensor's is not known to be one's.
    of_tensors = {one.owner.allocation_id for one in seen if one.impl is not None}
    seen = [one for one in seen if one.owner.allocation_id in of_tensors]
    # A tensor whose storage was exchanged stays one: allocations that had the same TensorImpl belong together.
    first: dict[int, int] = {}
    pairs = set()
    for one in seen:
        if one.impl is not None:
            allocation = one.owner.allocation_id
            pairs.add(tuple(sorted((first.setdefault(one.impl, allocation), allocation))))
    tensors: dict[int, int] = {}
    count = 0
    for left, right in sorted(pairs):
        if left not in tensors:
            tensors[left] = count
            count += 1
        tensors.setdefault(right, tensors[left])
    for one in seen:
        one.owner.id = tensors[one.owner.allocation_id]


def _number_allocations(seen: Iterable[Sighting]) -> None:
    """An address is another allocation once it was freed."""
    current: dict[tuple[int | None, torch.device], int] = {}
    count = 0
    for one in seen:
        if one.memory not in current:
            count += 1
            current[one.memory] = count
        one.owner.allocation_id = current[one.memory]
        if one.frees:
            del current[one.memory]
