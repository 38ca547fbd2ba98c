import importlib.util
import subprocess
import sys

import pytest

from sipo_trl.envs.smac.sc2 import messages

# In a process of its own, since messages can be registered only once; and without the package,
# since torch takes its time.
BATTLE = """
import runpy, sys

register_messages = runpy.run_path(sys.argv[1])["register_messages"]
register_messages()
register_messages()  # does nothing
from google.protobuf.internal import api_implementation
from pysc2.lib import remote_controller, protocol
from s2clientprotocol import common_pb2, raw_pb2, sc2api_pb2

units = [
    raw_pb2.Unit(tag=2**40 + n, owner=1 + n % 2, pos=common_pb2.Point(x=n / 8, y=1, z=2), health=35)
    for n in range(66)
]
response = sc2api_pb2.Response(id=7, status=sc2api_pb2.in_game)
response.observation.observation.raw_data.units.extend(units)
read = sc2api_pb2.Response.FromString(response.SerializeToString())
assert read.observation.observation.raw_data.units[65].pos.x == 65 / 8
assert protocol.Status(read.status).name == "in_game"
assert common_pb2.Race.Value("Zerg") == common_pb2.Zerg == 2
assert api_implementation.Type() == "upb", "the slow implementation"
"""


def test_pysc2_reads_and_writes_the_games_messages_at_full_speed():
    subprocess.run([sys.executable, "-c", BATTLE, messages.__file__], check=True)


@pytest.mark.parametrize("missing", ["pysc2", "s2clientprotocol"])
def test_a_missing_package_is_named_and_how_to_get_it(missing, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(messages, "find_spec", lambda name: None if name == missing else find(name))
    message = rf"needs the package {missing}: pip install 'sipo-trl\[smac\]'.*backend='embedded'"
    with pytest.raises(ModuleNotFoundError, match=message):
        messages.register_messages()
