package tie

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"mlpromote.dev/mlpromote/registry"
)

// Of engines of TensorRT-RTX: what their first bytes are. NVIDIA does not document them. They were read from
// engines of TensorRT-RTX 1.7 for each of its compute capabilities, for two of them, and for all: a mark, the
// version of the header, the size of the file, four bytes with the version of the runtime, the mark again, and
// a bit for each capability.
const (
	rtxHeader  = 40
	rtxMark    = "vtrt"
	rtxVersion = 2
)

// rtxArchs are the architectures by their bits.
var rtxArchs = [...]string{"sm_75", "sm_80", "sm_86", "sm_89", "sm_120", "sm_121"}

// RTX reads from an engine of TensorRT-RTX which version made it, and for which architecture.
func RTX(r io.ReaderAt, size int64) (Tie, error) {
	var head [rtxHeader]byte
	if n, err := r.ReadAt(head[:], 0); n < len(head) && err != nil && !errors.Is(err, io.EOF) {
		return Tie{}, err
	}
	if string(head[:4]) != rtxMark || string(head[28:32]) != rtxMark || binary.LittleEndian.Uint64(head[8:]) != rtxVersion {
		return Tie{}, registry.Errorf(registry.CodeInvalid,
			"this is not an engine of TensorRT-RTX with a header of version %d: that of another TensorRT, or of a release that this program does not know", rtxVersion)
	}
	if length := binary.LittleEndian.Uint64(head[16:]); length != uint64(size) {
		return Tie{}, registry.Errorf(registry.CodeInvalid, "the engine declares %d bytes, and has %d", length, size)
	}
	archs := binary.LittleEndian.Uint64(head[32:])
	at := bits.TrailingZeros64(archs)
	if bits.OnesCount64(archs) != 1 || at >= len(rtxArchs) {
		return Tie{}, registry.Errorf(registry.CodeInvalid,
			"the engine is declared for the set %#x of architectures: want a set that this program knows", archs)
	}
	v := head[24:28]
	return Tie{Backend: "cuda", Arch: rtxArchs[at], Runtime: fmt.Sprintf("%d.%d.%d.%d", v[0], v[1], v[2], v[3])}, nil
}
