"""Stands in for xir, by docsrc/source/doxygen/pydoc of Xilinx/Vitis-AI: a graph with a subgraph of the user and one of the DPU."""

from conversation import tell
from network import Network


class Subgraph:
    def __init__(self, device, network=None, children=()):
        self.name, self.device, self.network, self.children = device or "root", device, network, children

    def has_attr(self, name):
        return name == "device" and self.device is not None

    def get_attr(self, name):
        return {"device": self.device}[name]

    def toposort_child_subgraph(self):
        tell("Subgraph.toposort_child_subgraph")
        return list(self.children)


class Graph:
    def __init__(self, network):
        self.network = network

    @staticmethod
    def deserialize(path):
        tell("Graph.deserialize")
        with open(path, "rb") as f:
            return Graph(Network(f.read()))

    def get_root_subgraph(self):
        tell("Graph.get_root_subgraph")
        return Subgraph(None, children=(Subgraph("USER"), Subgraph("DPU", self.network)))
