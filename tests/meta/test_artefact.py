"""A policy on disk is what was trained, or it is refused with the file and the reason."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from melee import artefact
from melee.bandit import Bandit
from melee.errors import DataError, MeleeError, UnknownNameError
from melee.explorers import parse
from melee.explorers.melee_paper import SCHEMA, load_policy
from melee.loop import simulate
from melee.preparation import prepare
from tests.tasks import graded


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy"
    shutil.copytree(artefact.locate("paper"), path)
    return path


def change_manifest(path, change):
    file = path / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest)
    file.write_text(json.dumps(manifest))


def test_the_shipped_policy_loads_and_says_how_it_was_trained():
    path = artefact.locate("paper")
    manifest = json.loads((path / "manifest.json").read_text())
    training = manifest["training"]
    assert (training["n_tasks"], training["n_rows"], training["mu"]) == (82, 3000, 0.1)
    assert training["rollout"] == "expert"
    assert load_policy("paper").shape == (8,)
    assert "paper" in artefact.shipped()


def test_a_flipped_bit_anywhere_in_the_weights_is_noticed(policy):
    content = bytearray((policy / "weights.npz").read_bytes())
    for position in range(0, len(content), 7):
        broken = content.copy()
        broken[position] ^= 1 << position % 8
        (policy / "weights.npz").write_bytes(broken)
        with pytest.raises(DataError, match=r"weights\.npz: its SHA-256 .* changed or damaged"):
            load_policy(str(policy))


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_truncated_weights_are_noticed(policy, keep):
    content = (policy / "weights.npz").read_bytes()
    (policy / "weights.npz").write_bytes(content[:keep])
    with pytest.raises(DataError, match=rf"weights\.npz: {keep} bytes where .* truncated"):
        load_policy(str(policy))


def test_a_truncated_manifest_is_noticed(policy):
    text = (policy / "manifest.json").read_text()
    (policy / "manifest.json").write_text(text[: len(text) // 2])
    with pytest.raises(DataError, match=r"manifest\.json: not JSON"):
        load_policy(str(policy))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda m: m.update(format_version=2), "format version 2, and this is melee"),
        (lambda m: m.update(format="other"), "not the manifest of a MELEE policy"),
        (lambda m: m["schema"].reverse(), "the features are time step, entropy"),
        (lambda m: m.update(kind="melee"), "a policy for melee; expected one for melee-paper"),
        (lambda m: m.pop("reference"), "'reference' is missing"),
        (lambda m: m["weights"].pop("sha256"), "the weights' 'sha256' is missing"),
        (
            lambda m: m["reference"]["scores"][0].reverse(),
            "reference decisions come out differently",
        ),
    ],
)
def test_a_wrong_manifest_is_refused_with_the_reason(policy, change, sentence):
    change_manifest(policy, change)
    with pytest.raises(MeleeError, match=sentence):
        load_policy(str(policy))


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.full(8, np.nan), "not finite numbers"),
        (np.ones(7), r"shape \(7,\); expected \(8,\)"),
        (np.ones((8, 1)), "expected"),
        (np.ones(8, np.float32), "not finite numbers"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(tmp_path, weights, sentence):
    artefact.save(
        tmp_path / "p",
        kind="melee-paper",
        schema=SCHEMA,
        arrays={"weights": weights},
        training={},
        reference={"features": np.zeros((0, 2, 8)), "scores": np.zeros((0, 2))},
    )
    with pytest.raises(DataError, match=sentence):
        load_policy(str(tmp_path / "p"))


def test_pickled_objects_are_never_loaded(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("owned",))

    buffer = tmp_path / "evil.npz"
    np.savez(buffer, weights=np.array([Evil()], dtype=object))
    shutil.copytree(artefact.locate("paper"), tmp_path / "p")
    content = buffer.read_bytes()
    (tmp_path / "p" / "weights.npz").write_bytes(content)
    import hashlib

    digest = hashlib.sha256(content).hexdigest()
    change_manifest(
        tmp_path / "p", lambda m: m["weights"].update(bytes=len(content), sha256=digest)
    )
    with pytest.raises(DataError, match="not a file of arrays"):
        load_policy(str(tmp_path / "p"))


def test_an_unknown_policy_is_answered_with_those_that_exist():
    with pytest.raises(UnknownNameError, match=r"Known: .*paper.*, or the directory of a trained"):
        load_policy("papre")


def test_a_directory_without_a_policy_is_named(tmp_path):
    with pytest.raises(DataError, match=r"manifest\.json: cannot be read"):
        load_policy(str(tmp_path))


def test_the_explorer_refuses_a_bad_policy_before_the_first_round(policy):
    (policy / "weights.npz").write_bytes(b"")
    prepared = prepare(graded(60, n_actions=2, n_features=2, seed=0))
    explorer = parse(f"melee-paper:policy={policy}")
    with pytest.raises(DataError, match="truncated"):
        simulate(prepared, explorer)
    with pytest.raises(DataError, match="truncated"):
        Bandit.for_prepared(prepared, explorer)


@given(st.binary(max_size=400))
def test_any_bytes_as_a_manifest_are_refused_in_a_sentence(content):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as path:
        (Path(path) / "manifest.json").write_bytes(content)
        with pytest.raises(MeleeError, match=r"manifest\.json"):
            load_policy(path)
