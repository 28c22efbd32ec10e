"""Calls the ``aoti-inspect`` binary that this wheel carries.

One assert after compiling gates a training script::

    import aoti_inspect

    path = torch._inductor.aoti_compile_and_package(exported)
    verdict = aoti_inspect.verify(path, inputs=[x, mask], device="cuda")
    assert verdict, verdict

Neither torch nor numpy is imported: a tensor is anything with ``shape`` and ``dtype``, and ``stride()``
and ``device`` where it has them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from typing import Any, Iterable, Mapping, Sequence, Union

__all__ = ["Verdict", "find_binary", "spec", "verify"]

Spec = Union[str, Any]


class Verdict:
    """What ``verify`` found. True when all that was asked holds."""

    def __init__(self, exit_code: int, report: Mapping[str, Any]):
        #: 0 holds, 1 fails, 3 unreadable, 4 undecided
        self.exit_code = exit_code
        #: the JSON report, version 1
        self.report = report

    def __bool__(self) -> bool:
        return self.exit_code == 0

    @property
    def findings(self) -> list:
        """All findings of all artefacts, also those that passed."""
        return [f for a in self.report.get("artifacts", []) for f in a.get("findings", [])]

    def __str__(self) -> str:
        lines = []
        for artifact in self.report.get("artifacts", []):
            lines.append(f"{artifact['verdict'].upper()} {artifact['path']}")
            if artifact.get("error"):
                lines.append(f"  {artifact['error']}")
            for finding in artifact.get("findings", []):
                counts = finding["level"] == "deny" and not finding.get("waived")
                if counts and finding["outcome"] in ("fail", "unknown"):
                    lines.append(f"  {finding['outcome']} {finding['code']}: {finding['message']}")
                    if finding.get("fix"):
                        lines.append(f"    fix: {finding['fix']}")
        return "\n".join(lines)

    __repr__ = __str__


def find_binary() -> str:
    """Path of the ``aoti-inspect`` binary: the one installed with this package, else the one on ``PATH``."""
    name = "aoti-inspect" + (sysconfig.get_config_var("EXE") or "")
    schemes = [sysconfig.get_path("scripts")]
    user = "nt_user" if os.name == "nt" else "posix_user"
    if user in sysconfig.get_scheme_names():
        schemes.append(sysconfig.get_path("scripts", scheme=user))
    # `pip install --target DIR` puts scripts beside the package
    schemes.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    for folder in schemes:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    found = shutil.which(name)
    if found:
        return found
    raise FileNotFoundError(f"{name} is neither in {', '.join(schemes)} nor on PATH")


def spec(value: Spec) -> str:
    """A tensor in the notation of ``--input``: ``float32:2x10/10x1@cuda:0``. A text is taken as it is."""
    if isinstance(value, str):
        return value
    try:
        dims = [int(size) for size in value.shape]
        dtype = str(value.dtype)
    except AttributeError:
        raise TypeError(
            f"{type(value).__name__} is no input: give a tensor (shape, dtype) or a text such as 'f32:2x10'. "
            "Python numbers and None are baked in at export and are not inputs."
        ) from None
    text = f"{dtype.rsplit('.', 1)[-1]}:{'x'.join(map(str, dims)) if dims else 'scalar'}"
    strides = _strides(value)
    if dims and strides is not None:
        text += "/" + "x".join(map(str, strides))
    device = getattr(value, "device", None)
    return f"{text}@{device}" if device is not None else text


def _strides(value: Any) -> Sequence[int] | None:
    """Strides in elements: torch's ``stride()``, else numpy's ``strides``, which are bytes."""
    stride = getattr(value, "stride", None)
    if callable(stride):
        return [int(s) for s in stride()]
    strides, size = getattr(value, "strides", None), getattr(value, "itemsize", None)
    if strides is not None and size:
        return [int(s) // int(size) for s in strides]
    return None


def verify(
    path: Union[str, os.PathLike],
    inputs: Union[Iterable[Spec], Mapping[str, Spec], None] = None,
    **configuration: Any,
) -> Verdict:
    """Compares an artefact with the way it is going to be loaded.

    ``inputs``: tensors or specs in call order, or a mapping from call path, name or position to one.
    ``configuration``: the flags of ``aoti-inspect verify`` as keywords, ``gpu_memory="24GiB"``,
    ``gpu=["H100", "A100"]``, ``this_host=True``.

    Raises ``ValueError`` for wrong use (exit code 2), with the command's own message.
    """
    command = [find_binary(), "verify", "--format", "json"]
    if isinstance(inputs, Mapping):
        command += [f"--input={which}={spec(value)}" for which, value in inputs.items()]
    elif inputs is not None:
        specs = [spec(value) for value in inputs]
        command += [f"--input={text}" for text in specs] or ["--input=none"]
    for key, value in configuration.items():
        flag = "--" + key.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                command.append(flag)
            elif one is not None and one is not False:
                command.append(f"{flag}={one}")
    command += ["--", os.fspath(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1, 3, 4):
        raise ValueError(done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}")
    return Verdict(done.returncode, json.loads(done.stdout))
