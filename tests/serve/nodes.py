"""Services that share a journal, in the event loop of a test."""

from melee.auditing import audit
from melee.journal import verify
from melee.serve.app import App
from melee.serve.service import Service, open_journal
from tests.journals import reading, straight
from tests.serve.servers import QUICK, Local


class Node(Local):
    """A service in the event loop of others."""

    def __init__(self, runner, address, agents=None, trials=None):
        self.runner = runner
        self.service = Service(open_journal(address))
        try:
            self.service.open({"agent": dict(QUICK)} if agents is None else agents, trials)
        except BaseException:
            self.service.journal.close()
            raise
        self.app = App(self.service)
        runner.run(self.service.start())

    @property
    def agent(self):
        return self.service.agents["agent"].agent

    def close(self):
        self.runner.run(self.service.stop())

    def look(self):
        """Have it look at what others have written."""
        self.sharing._not_before = 0.0
        self.turns.look_at(self.sharing.look())

    def settle(self):
        """Have it end its turn; who is refused does not wait for that."""
        self.runner.run(self.turns.between(lambda: None))

    @property
    def turns(self):
        assert self.service.turns is not None
        return self.service.turns

    @property
    def sharing(self):
        return self.turns.sharing


def decide(node, context, **more):
    status, made = node.ask("POST", "/v1/decisions", {"context": context, **more})
    assert status == 200, made
    return made


def reward(node, id, value):
    return node.ask("POST", f"/v1/decisions/{id}/reward", {"reward": value})


def members(node):
    """The fingerprints of a node's agents, once it has looked."""
    node.look()
    return {name: one.agent.fingerprint for name, one in node.service.agents.items()}


def check_nodes(nodes, address):
    """All nodes are what the journal makes of its agents, and every decision comes out again."""
    alone = {name: straight(reading(address, name)).fingerprint for name in members(nodes[0])}
    assert [members(one) for one in nodes] == [alone] * len(nodes)
    for name in alone:
        assert audit(reading(address, name)).difference is None
    assert list(verify(reading(address))) == []
