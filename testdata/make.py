#!/usr/bin/env python3
"""Builds the models of testdata/artifacts again with a public torch wheel.

    python3 -m venv v && v/bin/pip install torch==2.15.0 --index-url https://download.pytorch.org/whl/cpu
    v/bin/python make.py list
    v/bin/python make.py build mlp_dynamic out/          # writes out/TORCH-DEVICE-mlp_dynamic.{pt2,so}
    v/bin/python make.py mixed out/                      # two_models, ep_and_aoti, negatives

Needs g++. For CUDA models install the CUDA wheel and add --device cuda on a host with a GPU.
Releases before 2.6 write libraries only. AOT_INDUCTOR_ENABLE_LINE_TABLES=0 keeps the libraries of 2.13+ small.
Cross builds (aarch64, macOS) took the generated sources of this script and compiled them with the commands in the
`made` field of their answer files; the Windows ones set the options in CROSS_WINDOWS.
"""
import argparse
import os
import pathlib

os.environ.setdefault("AOT_INDUCTOR_ENABLE_LINE_TABLES", "0")

import torch  # noqa: E402
from torch.export import Dim, export  # noqa: E402


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(10, 16)
        self.fc2 = torch.nn.Linear(16, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc2(torch.relu(self.fc1(x))))


class MultiIo(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(32, 8)
        self.register_buffer("scale", torch.rand(8))

    def forward(self, ids, x, mask, *, bias):
        h = torch.where(mask.unsqueeze(-1), self.emb(ids) + x * self.scale, bias)
        return {"logits": h, "pooled": (h.sum(1), ids + 1)}


class Dtypes(torch.nn.Module):
    def forward(self, d):
        return [d["f16"] + 1, d["bf16"] * 2, d["f64"] - 1, d["i8"] + 1, d["u8"] + 1, d["i16"] + 1, d["i32"] + 1,
                d["i64"] + 1, ~d["b"]]


class Scalar0d(torch.nn.Module):
    def forward(self, x, t):
        return x * t


class Zero(torch.nn.Module):
    def forward(self, e, x):
        return x + 1


class Elementwise(torch.nn.Module):
    def forward(self, x, y):
        return torch.sin(x) * y + x


class LastByCumsum(torch.nn.Module):
    def forward(self, lengths, values):
        return values[torch.cumsum(lengths, 0) - 1] * 2


class CustomOp(torch.nn.Module):
    """Needs `xplat::split2` and `xplat::sine_scale`, registered from Python."""

    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(4, 4)

    def forward(self, x):
        a, b = torch.ops.xplat.split2(self.l(x))
        return torch.ops.xplat.sine_scale(a, 1.5, [0, 1], "cos", b)


def register_custom_ops():
    @torch.library.custom_op("xplat::split2", mutates_args=())
    def split2(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x * 3

    @split2.register_fake
    def _(x):
        return torch.empty_like(x), torch.empty_like(x)

    @torch.library.custom_op("xplat::sine_scale", mutates_args=())
    def sine_scale(x: torch.Tensor, k: float, dims: list[int], mode: str, bias: torch.Tensor) -> torch.Tensor:
        return torch.cos(x) * k + bias

    @sine_scale.register_fake
    def _(x, k, dims, mode, bias):
        return torch.empty_like(x)


def mlp(rows, dynamic=None):
    return lambda d: (Mlp(), (torch.rand(rows, 10, device=d),), {}, dynamic)


def multi_io(d):
    batch, seq = Dim("batch", min=1, max=1024), Dim("seq", min=2, max=77)
    args = (torch.randint(0, 32, (4, 6), device=d), torch.rand(4, 6, 8, device=d), torch.rand(4, 6, device=d) > 0.5)
    shapes = {"ids": {0: batch, 1: seq}, "x": {0: batch, 1: seq}, "mask": {0: batch, 1: seq}, "bias": None}
    return MultiIo(), args, {"bias": torch.rand(8, device=d)}, shapes


def dtypes(d):
    kinds = {"f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i8": torch.int8, "u8": torch.uint8,
             "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "b": torch.bool}
    return Dtypes(), ({k: torch.ones(3, device=d).to(v) for k, v in kinds.items()},), {}, None


def ragged(d):
    bags, vals = Dim("bags"), Dim("vals")
    args = (torch.tensor([2, 3, 1], device=d), torch.rand(6, device=d))
    return LastByCumsum(), args, {}, {"lengths": {0: bags}, "values": {0: vals}}


def custom_op(d):
    register_custom_ops()
    return CustomOp(), (torch.rand(3, 4, device=d),), {}, {"x": {0: Dim("n", min=2, max=64)}}


DYNAMIC = {"x": {0: Dim("batch", min=1, max=1024)}}
OUTSIDE = {"aot_inductor.package_constants_in_so": False}
# name: (model with its example and dynamic shapes, Inductor options)
MODELS = {
    "mlp_static": (mlp(2), {}),
    "mlp_dynamic": (mlp(8, DYNAMIC), {}),
    "no_lower": (mlp(8, DYNAMIC), {"aot_inductor.check_lowerbound": False}),
    "multi_io": (multi_io, {}),
    "dtypes": (dtypes, {}),
    "scalar0d": (lambda d: (Scalar0d(), (torch.rand(3, device=d), torch.rand((), device=d)), {}, None), {}),
    "zero": (lambda d: (Zero(), (torch.rand(0, 3, device=d), torch.rand(2, 3, device=d)), {}, None), {}),
    "elementwise": (lambda d: (Elementwise(), (torch.rand(3, 5, device=d), torch.rand(3, 5, device=d)), {}, None), {}),
    "last_by_cumsum": (ragged, {}),
    "assert_idx": (ragged, {"assert_indirect_indexing": True}),
    "custom_op": (custom_op, {}),
    "mmap_weights": (mlp(2), {"aot_inductor.force_mmap_weights": True}),
    "weights_outside": (mlp(2), OUTSIDE),
    "blob_weights": (mlp(2), OUTSIDE | {"aot_inductor.package_constants_on_disk_format": "binary_blob"}),
    "pickle_weights": (mlp(2), OUTSIDE | {"aot_inductor.package_constants_on_disk_format": "pickle_weights"}),
    "cpp_only": (mlp(2), {"aot_inductor.package_cpp_only": True}),
    "standalone": (mlp(2), {"aot_inductor_mode.compile_standalone": True,
                            "aot_inductor.model_name_for_generated_files": "mlp"}),
    "multi_arch": (mlp(2), {"aot_inductor.emit_multi_arch_kernel": True}),
    "embed_cubin": (mlp(2), {"aot_inductor.embed_kernel_binary": True}),
}
CROSS_WINDOWS = OUTSIDE | {
    "aot_inductor.cross_target_platform": "windows",
    "aot_inductor.aoti_shim_library_path": "DIR_OF_IMPORT_LIBRARY",
    "aot_inductor.package_constants_on_disk_format": "binary_blob",
    "aot_inductor.precompile_headers": False,
}


def program(name, device):
    torch.manual_seed(0)
    model, args, kwargs, shapes = MODELS[name][0](device)
    return export(model.eval().to(device), args, kwargs, dynamic_shapes=shapes)


def build(name, out, device):
    stem = out / f"{torch.__version__.split('+')[0]}-{device}-{name}"
    exported, options = program(name, device), dict(MODELS[name][1])
    if tuple(int(p) for p in torch.__version__.split(".")[:2]) >= (2, 6):
        torch._inductor.aoti_compile_and_package(exported, package_path=f"{stem}.pt2", inductor_configs=options)
    if "aot_inductor.package_cpp_only" not in options and "aot_inductor_mode.compile_standalone" not in options:
        args, kwargs = exported.example_inputs
        options["aot_inductor.output_path"] = str(stem.with_suffix(".so").absolute())
        torch._inductor.aot_compile(exported.module(), args, kwargs, options=options)


def mixed(out):
    from torch._inductor import aot_compile
    from torch.export.pt2_archive._package import package_pt2
    version = torch.__version__.split("+")[0]

    def files(name):
        exported = program(name, "cpu")
        args, kwargs = exported.example_inputs
        return aot_compile(exported.module(), args, kwargs, options={"aot_inductor.package": True})

    def write(name, **parts):
        package_pt2(str(out / f"{version}-cpu-{name}.pt2"), **parts)

    write("two_models", aoti_files={"model": files("mlp_static"), "model2": files("elementwise")})
    write("ep_and_aoti", exported_programs={"model": program("mlp_static", "cpu")},
          aoti_files={"model": files("elementwise")}, extra_files={"notes.txt": "hello", "labels.json": '{"x": "image"}'})
    write("ep_only", exported_programs={"model": program("mlp_static", "cpu")})
    write("extra_only", extra_files={"a.txt": "x"})
    torch.save(Mlp().state_dict(), out / f"{version}-cpu-torch_save.pt")
    torch.save(Mlp().state_dict(), out / f"{version}-cpu-torch_save_legacy.pt2", _use_new_zipfile_serialization=False)
    torch.jit.trace(Mlp(), torch.rand(2, 10)).save(out / f"{version}-cpu-torchscript.pt")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["list", "build", "mixed"])
    parser.add_argument("rest", nargs="*", help="build: MODEL OUT; mixed: OUT")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    if args.what == "list":
        print("\n".join(MODELS))
        return
    out = pathlib.Path(args.rest[-1])
    out.mkdir(parents=True, exist_ok=True)
    if args.what == "build":
        build(args.rest[0], out, args.device)
    else:
        mixed(out)


if __name__ == "__main__":
    main()
