"""Trials, shadows, apprentices and roll-backs over HTTP."""

import random
from typing import Any

import pytest

from melee import DataError, InputError
from melee.auditing import audit
from melee.journal import Journal, verify
from melee.serve.service import Service
from tests.journals import reading, straight
from tests.serve.servers import ACTIONS, Local

WORTH = {"a": 0.1, "b": 0.9, "c": 0.1}


def live(local, first, last, units=None, path="/v1"):
    rng = random.Random(first)
    for number in range(first, last):
        body: dict[str, Any] = {"context": {"hour": number % 24}}
        if units:
            body["unit"] = f"visitor {number % units}"
        status, made = local.ask("POST", f"{path}/decisions", body)
        assert status == 200, made
        reward = float(rng.random() < WORTH[made["action"]])
        assert local.ask("POST", f"/v1/decisions/{made['id']}/reward", {"reward": reward})[0] == 200


def trial(local, name, **body):
    return local.ask("PUT", f"/v1/trials/{name}", body)


def check_journal(place, local):
    """Every agent is what its events make of it, and every decision comes out again."""
    agents = {name: one.agent for name, one in local.service.agents.items()}
    local.close()
    assert list(verify(reading(place))) == []
    for name, agent in agents.items():
        assert straight(reading(place, name)).fingerprint == agent.fingerprint
        assert audit(reading(place, name)).difference is None


def test_two_explorers_side_by_side(tmp_path):
    local = Local(tmp_path)
    agent = local.service.agents["agent"].agent
    for i in range(40):  # it knows what is best
        agent.learn({"hour": i % 24}, ACTIONS[i % 3], WORTH[ACTIONS[i % 3]], 0.5)
    assert trial(local, "random", explorer="uniform", share=0.5) == (
        200,
        {"trial": "random", "explorer": "uniform", "share": 0.5},
    )
    live(local, 40, 440)
    status, answer = local.ask("GET", "/v1/trials")
    (found,) = answer["trials"]
    assert (status, answer["behind"]) == (200, 0)
    assert (found["trial"], found["kind"], found["rounds"]) == ("random", "share", 400)
    assert found["high"] < 0.0
    assert "random earns less than the agent" in found["sentence"]
    other = local.service.agents["agent.random"]
    assert other.agent.n_learned_ == 40 + found["own"]
    assert local.ask("GET", "/v1/agents/agent")[1]["trials"] == [found]
    check_journal(tmp_path, local)
    again = Local(tmp_path, agents={})
    assert again.ask("GET", "/v1/trials")[1]["trials"] == [found]
    again.close()


def test_a_decision_of_a_trial_is_asked_for_again_rewarded_and_looked_at_as_any_other(local):
    trial(local, "random", explorer="uniform", share=0.5)
    made = {}
    for i in range(20):
        body = {"context": {"x": i}, "id": f"mine {i}"}
        made[f"mine {i}"] = local.ask("POST", "/v1/decisions", body)[1]
        assert local.ask("POST", "/v1/decisions", body) == (200, made[f"mine {i}"])
        assert local.ask("POST", "/v1/decisions", {**body, "context": {"x": -1}})[0] == 409
    assert {one["policy"].partition("@")[0] for one in made.values()} == {
        "epsilon-greedy",
        "uniform",
    }
    trial(local, "random", share=0.9)  # who was drawn stays where they are
    rewards = {"rewards": [{"id": id, "reward": 1} for id in made]}
    bad = {"rewards": [*rewards["rewards"][:5], {"id": "nobody", "reward": 1}]}
    assert local.ask("POST", "/v1/rewards", bad)[0] == 404
    assert local.ask("POST", "/v1/rewards", rewards) == (200, {"learned": 20, "repeated": 0})
    assert local.ask("POST", "/v1/rewards", rewards) == (200, {"learned": 0, "repeated": 20})
    for id in made:
        assert local.ask("GET", f"/v1/decisions/{id.replace(' ', '%20')}")[1]["reward"] == 1.0


@pytest.mark.parametrize("ended", [False, True])
def test_a_decision_of_a_trial_is_not_made_again_by_others(local, ended):
    trial(local, "random", explorer="uniform", share=0.5)
    ids = [f"i{n}" for n in range(12)]
    bodies = [{"context": {"x": n}, "id": id} for n, id in enumerate(ids)]
    made = [local.ask("POST", "/v1/decisions", body)[1] for body in bodies]
    assert len({one["policy"] for one in made}) == 2
    if ended:
        local.ask("DELETE", "/v1/trials/random")
    assert [local.ask("POST", "/v1/decisions", body) for body in bodies] == [(200, o) for o in made]
    for first in range(12):  # many at once, whoever has made the first of them
        order = [*range(first, 12), *range(first)]
        contexts, again = [{"x": n} for n in order], [ids[n] for n in order]
        more = {"contexts": [{"x": -1}, *contexts], "ids": [f"new {first}", *again]}
        for asked, new in (({"contexts": contexts, "ids": again}, 0), (more, 1)):
            status, answer = local.ask("POST", "/v1/decisions", asked)
            assert (status, answer["decisions"][new:]) == (200, [made[n] for n in order])
    for one, body in zip(made, bodies, strict=True):
        assert local.ask("POST", "/v1/decisions", {**body, "chosen": one["action"]})[0] == 409
        assert local.ask("POST", "/v1/decisions", {**body, "top": 2})[0] == 409
    family = [local.service.agents[name].agent for name in ("agent", "agent.random")]
    assert sum(agent.n_pending_ for agent in family) == 12 + 12


def test_a_visitor_stays_in_a_trial_and_many_contexts_are_drawn_together(local):
    trial(local, "random", explorer="uniform", share=0.5)
    for unit in ("ann", "bob", "cem", "dora", "eve"):
        bodies = [{"context": {"x": i}, "unit": unit} for i in range(6)]
        made = [local.ask("POST", "/v1/decisions", body)[1] for body in bodies]
        assert len({one["policy"] for one in made}) == 1
    drawn = set()
    for i in range(20):
        body = {"contexts": [{"x": 1}, {"x": 2}], "ids": [f"{i}/1", f"{i}/2"]}
        status, made = local.ask("POST", "/v1/decisions", body)
        assert status == 200
        assert local.ask("POST", "/v1/decisions", body) == (200, made)
        (policy,) = {one["policy"] for one in made["decisions"]}
        drawn.add(policy)
    assert len(drawn) == 2


def test_trials_end_and_actions_come_and_go_for_all(local):
    trial(local, "random", explorer="uniform", share=0.5)
    local.ask("POST", "/v1/actions", {"add": ["d"], "remove": ["a"]})
    assert local.service.agents["agent.random"].agent.actions_ == ["b", "c", "d"]
    made = [local.ask("POST", "/v1/decisions", {"context": {"x": i}})[1] for i in range(10)]
    assert local.ask("DELETE", "/v1/trials/random")[0] == 200
    assert local.ask("GET", "/v1/trials")[1] == {"trials": [], "behind": 0}
    for one in made:  # late
        assert local.ask("POST", f"/v1/decisions/{one['id']}/reward", {"reward": 1})[0] == 200
    assert local.ask("DELETE", "/v1/trials/random")[0] == 404


@pytest.mark.parametrize(
    ("name", "body", "status", "sentence"),
    [
        ("x", {"share": 0.5}, 400, "explorer is None"),
        ("x", {"explorer": "uniform"}, 400, "share"),
        ("x", {"explorer": "uniform", "share": "half"}, 400, "share is 'half'"),
        ("x", {"explorer": "uniform", "share": 1}, 400, "share is 1"),
        ("x", {"explorer": "uniform", "share": True}, 400, "share is True"),
        ("x", {"explorer": "uniform", "share": 0.6}, 400, "1.1 together"),
        ("x", {"explorer": "nothing", "share": 0.1}, 400, "nothing"),
        ("there", {"explorer": "linucb", "share": 0.1}, 400, "the trial there has the explorer"),
        ("x y", {"explorer": "uniform", "share": 0.1}, 400, "letters"),
        ("x" * 70, {"explorer": "uniform", "share": 0.1}, 400, "letters"),
    ],
)
def test_trials_that_make_no_sense_are_refused(local, name, body, status, sentence):
    trial(local, "there", explorer="uniform", share=0.5)
    found, answer = trial(local, name.replace(" ", "%20"), **body)
    assert (found, sentence in answer["error"]) == (status, True), answer
    assert len(local.service.agents) == 2


def test_a_shadow_never_acts(local):
    trial(local, "shade", explorer="uniform", share=0)
    live(local, 0, 60)
    assert list(local.service.agents) == ["agent"]
    (found,) = local.ask("GET", "/v1/trials")[1]["trials"]
    assert (found["kind"], found["rounds"], found["own"]) == ("shadow", 60, 0)
    assert 0.2 < found["agreement"] < 0.5
    trial(local, "shade", share=0.5)  # it begins with what it has seen
    assert local.service.agents["agent.shade"].agent.n_learned_ == 60


def test_an_apprentice_repeats_and_learns(tmp_path):
    local = Local(tmp_path)
    rng = random.Random(0)
    for number in range(300):
        action = rng.choice(ACTIONS)
        body = {
            "context": {"hour": number % 24},
            "chosen": action,
            "probability": 1 / 3,
            "id": f"i{number}",
        }
        status, made = local.ask("POST", "/v1/decisions", body)
        assert (status, made["action"], made["policy"]) == (200, action, "given")
        assert made["probability"] == pytest.approx(1 / 3)
        if number < 3:
            assert local.ask("POST", "/v1/decisions", body) == (200, made)
            other = {**body, "chosen": next(one for one in ACTIONS if one != action)}
            assert local.ask("POST", "/v1/decisions", other)[0] == 409
            assert local.ask("POST", "/v1/decisions", {**body, "probability": 0.5})[0] == 409
            asked = {"context": body["context"], "id": body["id"]}  # what the agent would choose
            assert local.ask("POST", "/v1/decisions", asked)[0] == 409
        reward = float(rng.random() < WORTH[action])
        local.ask("POST", f"/v1/decisions/i{number}/reward", {"reward": reward})
    (found,) = local.ask("GET", "/v1/trials")[1]["trials"]
    assert (found["kind"], found["rounds"]) == ("apprentice", 300)
    assert found["average"] > found["baseline"] + 0.1
    check_journal(tmp_path, local)
    again = Local(tmp_path, agents={})
    assert again.ask("GET", "/v1/trials")[1]["trials"] == [found]
    again.close()


def test_trials_shadows_and_choices_among_candidates(tmp_path):
    """What holds of actions that stay holds of candidates, which come with each question."""
    local = Local(tmp_path, {"agent": {"explorer": "epsilon-greedy"}})
    assert trial(local, "random", explorer="uniform", share=0.5)[0] == 200
    assert trial(local, "shade", explorer="linucb", share=0)[0] == 200
    status, answer = trial(local, "odd", explorer="cover", share=0)
    assert (status, "candidates" in answer["error"]) == (400, True)
    rng = random.Random(0)

    def shelf(i):
        return {f"{label}{i % 7}": {"kind": label, "age": i % 5} for label in WORTH}

    for i in range(240):
        body = {"context": {"hour": i % 24}, "actions": shelf(i), "id": f"i{i}"}
        if i % 4 == 3:
            body |= {"chosen": rng.choice(list(shelf(i))), "probability": 1 / 3}
        status, made = local.ask("POST", "/v1/decisions", body)
        assert status == 200, made
        assert local.ask("POST", "/v1/decisions", body) == (200, made)
        assert local.ask("POST", "/v1/decisions", {**body, "actions": shelf(i + 1)})[0] == 409
        reward = {"reward": float(rng.random() < WORTH[made["action"][0]])}
        assert local.ask("POST", f"/v1/decisions/i{i}/reward", reward)[0] == 200
    made = local.ask("POST", "/v1/decisions", {"contexts": [{}, {}], "actions": shelf(1)})
    assert made[0] == 200
    found = {one["trial"]: one for one in local.ask("GET", "/v1/trials")[1]["trials"]}
    assert {name: one["kind"] for name, one in found.items()} == {
        "random": "share",
        "shade": "shadow",
        "apprentice": "apprentice",
    }
    assert (found["random"]["rounds"], found["apprentice"]["rounds"]) == (180, 60)
    assert found["shade"]["rounds"] == 180 - found["random"]["own"]
    check_journal(tmp_path, local)


@pytest.mark.parametrize(
    "body",
    [
        {"chosen": "z"},
        {"chosen": ["a"]},
        {"chosen": "a", "probability": 0},
        {"chosen": "a", "probability": "likely"},
        {"chosen": "a", "probability": True},
        {"chosen": "a", "actions": ["b"]},
        {"chosen": "a", "explain": True},
        {"chosen": "a", "top": 2},
        {"chosen": "a", "contexts": [{"x": 1}]},
        {"probability": 0.5},
        {"unit": 7},
        {"unit": ""},
        {"unit": "u" * 300},
    ],
)
def test_choices_and_units_that_make_no_sense_are_refused(local, body):
    status, answer = local.ask("POST", "/v1/decisions", {"context": {"x": 1}, **body})
    assert status == 400, answer
    assert len(answer["error"]) > 10
    assert local.service.agents["agent"].agent.n_pending_ == 0


def test_an_agent_goes_back_over_http(tmp_path):
    local = Local(tmp_path)
    live(local, 0, 10)
    status, answer = local.ask("POST", "/v1/snapshot")
    live(local, 10, 20)
    name = reading(tmp_path).snapshots()[0].name
    agent = local.service.agents["agent"].agent
    assert local.ask("POST", "/v1/rollback", {"to": name}) == (200, {"event": 42, "learned": 10})
    assert agent.n_learned_ == 10
    assert local.ask("POST", "/v1/rollback", {"to": 21, "relearn_after": 21})[1]["learned"] == 20
    for body, sentence in [
        ({"to": 10**9}, "expected the number of an event"),
        ({"to": "yesterday"}, "neither the number"),
        ({"to": None}, "to is None"),
        ({"to": 5, "relearn_after": 1}, "relearn_after is 1"),
        ({"to": 1.5}, "to is 1.5"),
        ({}, "to"),
    ]:
        status, answer = local.ask("POST", "/v1/rollback", body)
        assert (status, sentence in answer["error"]) == (400, True), answer
    live(local, 20, 30)
    check_journal(tmp_path, local)


def test_trials_begin_with_the_service_and_are_shown_by_a_command(tmp_path):
    from typer.testing import CliRunner

    from melee.cli import app
    from melee.cli.serving import read_trials

    for _ in range(2):  # and go on with it
        local = Local(tmp_path, trials=read_trials(["uniform=0.5", "linucb:alpha=0.5=0"]))
        live(local, 0, 40)
        found = local.ask("GET", "/v1/trials")[1]["trials"]
        assert [(one["trial"], one["kind"]) for one in found] == [
            ("uniform", "share"),
            ("linucb", "shadow"),
        ]
        local.close()
    done = CliRunner().invoke(app, ["journal", "trials", str(tmp_path), "--explorers", "softmax"])
    lines = done.output.splitlines()
    assert [line.partition(" (")[0] for line in lines] == ["uniform", "linucb", "softmax"]
    assert "it would have chosen the same in" in lines[1]


def test_a_try_with_another_explorer_than_the_trial_there_is_refused(tmp_path):
    Local(tmp_path, trials={"linucb": ("linucb:alpha=0.5", 0.5)}).close()
    with pytest.raises(InputError, match=r"has the explorer linucb:alpha=0\.5, and linucb:alpha=2"):
        Service(Journal(tmp_path)).open({}, {"linucb": ("linucb:alpha=2", 0.5)})


def test_a_trial_that_cannot_be_kept_leaves_no_trace(local, monkeypatch):
    live(local, 0, 5)
    before = local.service.journal.head

    def full(_):
        monkeypatch.undo()
        raise DataError("no space")

    monkeypatch.setattr(local.service.journal._commits, "_write", full)
    assert trial(local, "random", explorer="uniform", share=0.5)[0] == 503
    assert (list(local.service.agents), local.service.journal.head) == (["agent"], before)
    live(local, 5, 10)
    assert trial(local, "random", explorer="uniform", share=0.5)[0] == 200
    live(local, 10, 20)
    assert local.service.agents["agent.random"].agent.n_learned_ >= 10


@pytest.mark.parametrize(
    "given", ["linucb", "linucb:alpha=x", "=0.5", "linucb=1", "linucb=-1", "linucb=nan"]
)
def test_a_try_that_makes_no_sense_is_refused(given):
    from melee.cli.serving import read_trials

    with pytest.raises(InputError, match="expected an explorer and its share, such as"):
        read_trials([given])


@pytest.mark.parametrize("workers", [1, 2])
def test_the_client_tries_follows_and_goes_back(tmp_path, workers):
    pytest.importorskip("uvicorn")
    from melee.client import Client, ServiceError
    from tests.serve.servers import running

    options = ("--actions", "a,b", "--explorer", "epsilon-greedy", "--workers", str(workers))
    with running(tmp_path, *options) as server:
        with Client(str(server.url)) as client:
            followed = client.follow({"x": 1}, "b", probability=0.5)
            assert (followed.action, followed.policy) == ("b", "given")
            assert client.learn(followed, 1.0)
            begun = client.begin_trial("try", "uniform", share=0.5)
            assert begun == {"trial": "try", "explorer": "uniform", "share": 0.5}
            policies = {client.act({"x": i}, unit="me").policy for i in range(5)}
            assert len(policies) == 1
            kinds = [one["kind"] for one in client.trials()]
            assert kinds == ["share", "apprentice"]
            assert client.end_trial("try")["share"] is None
            assert client.roll_back(1)["learned"] == 0
            with pytest.raises(ServiceError, match="there is no trial"):
                client.end_trial("try")
        assert server.stop() == 0
