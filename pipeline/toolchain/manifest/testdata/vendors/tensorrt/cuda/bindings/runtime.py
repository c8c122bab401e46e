"""Stands in for cuda.bindings.runtime, by the docstrings of cuda-bindings 13.5: memory of a device that is none, whose contents nobody can read but by copies
along a stream."""

import ctypes
import enum

from conversation import tell, want


class cudaError_t(enum.Enum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1


class cudaMemcpyKind(enum.Enum):
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2


class cudaStream_t:
    def __init__(self, handle):
        self.handle = handle

    def __int__(self):
        return self.handle


blocks, streams, following = {}, {}, [1 << 20]


def memory(address, size):
    """Bytes of the device, for what runs there."""
    block = blocks.get(address)
    want(block is not None and size <= len(block), f"{size} bytes at {address} are not on the device")
    return memoryview(block)[:size]


def cudaStreamCreate():
    tell("cudaStreamCreate")
    handle = 7 + len(streams)
    streams[handle] = []
    return cudaError_t.cudaSuccess, cudaStream_t(handle)


def cudaMalloc(size):
    want(type(size) is int and size > 0, "cudaMalloc takes a size")
    tell("cudaMalloc", size)
    address, following[0] = following[0], following[0] + 4096
    blocks[address] = bytearray(size)
    return cudaError_t.cudaSuccess, address


def cudaFree(address):
    tell("cudaFree", address)
    del blocks[address]
    return (cudaError_t.cudaSuccess,)


def cudaMemcpyAsync(dst, src, count, kind, stream):
    want(isinstance(stream, cudaStream_t) and type(count) is int, "cudaMemcpyAsync takes a stream and a count")
    up = kind is cudaMemcpyKind.cudaMemcpyHostToDevice
    on, host = (dst, src) if up else (src, dst)
    want(kind in cudaMemcpyKind and on in blocks and host not in blocks, "cudaMemcpyAsync: the direction is another")
    tell("cudaMemcpyAsync", *([on, "host"] if up else ["host", on]), count, kind, int(stream))

    def copy():
        if up:
            memory(on, count)[:] = ctypes.string_at(host, count)
        else:
            ctypes.memmove(host, bytes(memory(on, count)), count)

    streams[int(stream)].append(copy)
    return (cudaError_t.cudaSuccess,)


def cudaStreamSynchronize(stream):
    tell("cudaStreamSynchronize", int(stream))
    for do in streams[int(stream)]:
        do()
    streams[int(stream)].clear()
    return (cudaError_t.cudaSuccess,)
