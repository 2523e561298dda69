"""A trained exploration policy on disk: weights, and a manifest that says what they are.

A directory holds `weights.npz` (arrays only, never pickled objects) and `manifest.json` with
the feature schema, the training setting, the SHA-256 of the weights file and reference
decisions: inputs with the scores that the policy gave to them when it was saved. Loading
checks all of it, so a policy either decides as it did when it was trained or is refused.
"""

import hashlib
import io
import json
import math
import os
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from melee.arrays import Floats
from melee.atomic import make_directory, write_atomically
from melee.errors import DataError, file_error, unknown
from melee.limits import BYTES
from melee.version import __version__

FORMAT = "melee-policy"
FORMAT_VERSION = 1
MANIFEST, WEIGHTS = "manifest.json", "weights.npz"


@dataclass(frozen=True, eq=False)
class Artefact:
    """The weights of a trained policy, and what is known about them.

    Attributes
    ----------
    kind
        The explorer that the policy drives, such as `melee-paper`.
    schema
        Names of the features, in the order of the weights.
    arrays
        The weights by name.
    training
        The setting it was trained with, seed included.
    reference
        Inputs and the scores that belong to them, checked on loading.
    sha256
        Of the weights file: the policy's identity.
    """

    kind: str
    schema: tuple[str, ...]
    arrays: dict[str, Floats]
    training: dict[str, Any]
    reference: dict[str, Floats]
    sha256: str


def save(
    directory: str | os.PathLike[str],
    *,
    kind: str,
    schema: tuple[str, ...],
    arrays: dict[str, Floats],
    training: dict[str, Any],
    reference: dict[str, Floats],
) -> Artefact:
    """Write a policy; the manifest comes last, so a torn write is not taken for a policy."""
    path = Path(directory)
    make_directory(path)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    weights = buffer.getvalue()
    digest = hashlib.sha256(weights).hexdigest()
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "melee_version": __version__,
        "kind": kind,
        "schema": list(schema),
        "weights": {"file": WEIGHTS, "bytes": len(weights), "sha256": digest},
        "training": training,
        "reference": {name: array.tolist() for name, array in reference.items()},
    }
    write_atomically(path / WEIGHTS, weights)
    write_atomically(path / MANIFEST, (json.dumps(manifest, indent=2) + "\n").encode())
    return Artefact(kind, schema, arrays, training, reference, digest)


def shipped() -> list[str]:
    """The names of the policies that come with the package."""
    home = resources.files("melee") / "pretrained"
    return sorted(item.name for item in home.iterdir() if (item / MANIFEST).is_file())


def locate(name: str) -> Path:
    """Where a policy is: one of the package's by name, or a directory."""
    if name in shipped():
        return Path(str(resources.files("melee") / "pretrained" / name))
    if Path(name).is_dir():
        return Path(name)
    error = unknown("policy", name, shipped())
    raise type(error)(f"{error}, or the directory of a trained policy")


def load(
    name: str, *, kind: str, schema: tuple[str, ...], shapes: dict[str, tuple[int, ...]]
) -> Artefact:
    """Read a policy and check everything about it that can be checked.

    Parameters
    ----------
    name
        The name of a shipped policy, or its directory.
    kind, schema, shapes
        What the caller can use: the explorer's name, its features, its arrays' shapes (-1 where
        any length will do).
    """
    path = locate(name)
    manifest = _manifest(path / MANIFEST)
    file = path / WEIGHTS
    if manifest["kind"] != kind:
        raise DataError(f"{path}: a policy for {manifest['kind']}; expected one for {kind}")
    if tuple(manifest["schema"]) != schema:
        raise DataError(
            f"{path / MANIFEST}: the features are {', '.join(manifest['schema'])}; this version "
            f"computes {', '.join(schema)}: train the policy again"
        )
    try:
        content = file.read_bytes()
    except OSError as error:
        raise file_error(file, "read", error) from None
    expected = manifest["weights"]
    if len(content) != expected["bytes"]:
        raise DataError(
            f"{file}: {len(content)} bytes where the manifest says {expected['bytes']}; "
            "it is truncated or not its own: copy the policy again"
        )
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected["sha256"]:
        raise DataError(
            f"{file}: its SHA-256 begins {digest[:12]} where the manifest says "
            f"{expected['sha256'][:12]}; it was changed or damaged: copy the policy again"
        )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            n_bytes = sum(member.file_size for member in packed.infolist())
        if n_bytes > BYTES.most:
            raise DataError(BYTES.sentence(f"{file}: it unpacks to {n_bytes:,} bytes"))
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            weights = {key: np.asarray(arrays[key]) for key in arrays.files}
    except DataError:
        raise
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{file}: not a file of arrays ({error}); copy the policy again") from None
    for key, shape in shapes.items():
        given = weights[key].shape if key in weights else None
        fits = given is not None and len(given) == len(shape)
        if not fits or any(s not in (-1, g) for s, g in zip(shape, given or (), strict=True)):
            raise DataError(f"{file}: '{key}' has shape {given}; expected {shape}")
    for key, array in weights.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise DataError(
                f"{file}: '{key}' holds values that are not finite numbers; train again"
            )
    reference = {k: np.asarray(v, dtype=np.float64) for k, v in manifest["reference"].items()}
    return Artefact(kind, schema, weights, manifest["training"], reference, digest)


def _manifest(path: Path) -> dict[str, Any]:
    """The manifest as a dictionary with the fields that it must have."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); is this a policy?") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON ({error}); copy the policy again") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{path}: not the manifest of a MELEE policy; check the path")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise DataError(
            f"{path}: format version {version}, and this is melee {__version__}, which reads "
            f"version {FORMAT_VERSION}; install the version that wrote it "
            f"({manifest.get('melee_version')})"
        )
    fields = {"kind": str, "schema": list, "weights": dict, "training": dict, "reference": dict}
    for name, kind in fields.items():
        if not isinstance(manifest.get(name), kind):
            raise DataError(f"{path}: '{name}' is missing or of the wrong type; copy it again")
    for name, type_ in {"bytes": int, "sha256": str}.items():
        if not isinstance(manifest["weights"].get(name), type_):
            raise DataError(f"{path}: the weights' '{name}' is missing; copy the policy again")
    return manifest


def check_reference(policy: Artefact, scores: Floats, where: str) -> None:
    """Refuse a policy whose reference inputs no longer get their scores."""
    expected = policy.reference["scores"]
    if expected.shape != scores.shape or not np.allclose(expected, scores, rtol=0, atol=1e-9):
        gap = float(np.abs(expected - scores).max()) if expected.shape == scores.shape else math.inf
        raise DataError(
            f"{where}: its reference decisions come out differently (by up to {gap:.3g}); this "
            "version computes something else than the one that trained it: train the policy again"
        )
