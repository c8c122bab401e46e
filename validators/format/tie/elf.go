package tie

import (
	"encoding/binary"
	"errors"
	"io"

	"mlpromote.dev/mlpromote/registry"
)

// Of ELF files of 64 bits, little-endian (System V ABI, gabi chapters 4 and 5; x86-64 psABI, "Program
// Property"; elf.h of glibc): sizes and offsets of what is read, and the values looked for.
const (
	elfHeader, elfProgramHeader = 64, 56
	elfX8664                    = 62         // e_machine
	elfPropertySegment          = 0x6474e553 // PT_GNU_PROPERTY
	elfPropertyNote             = 5          // NT_GNU_PROPERTY_TYPE_0
	elfISANeeded                = 0xc0008002 // GNU_PROPERTY_X86_ISA_1_NEEDED
	maxSegments, maxProperties  = 64, 4096
)

// elfLevels are the levels of x86-64 by their bits in the property, as LLVM calls them.
var elfLevels = [...]string{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}

// Object reads from a shared object for x86-64 which level of instructions it needs. The dynamic
// linker of glibc reads the same property, and does not load the object on a lesser processor.
func Object(r io.ReaderAt, size int64) (Tie, error) {
	var head [elfHeader]byte
	if n, err := r.ReadAt(head[:], 0); n < len(head) || string(head[:6]) != "\x7fELF\x02\x01" || binary.LittleEndian.Uint16(head[18:]) != elfX8664 {
		if err != nil && !errors.Is(err, io.EOF) {
			return Tie{}, err
		}
		return Tie{}, registry.Errorf(registry.CodeInvalid, "this is not a shared object for x86-64")
	}
	at, count := binary.LittleEndian.Uint64(head[32:]), binary.LittleEndian.Uint16(head[56:])
	if binary.LittleEndian.Uint16(head[54:]) != elfProgramHeader || count > maxSegments || at > uint64(size) {
		return Tie{}, registry.Errorf(registry.CodeInvalid, "the shared object's table of segments is damaged, or has more than %d", maxSegments)
	}
	for i := range int64(count) {
		var segment [elfProgramHeader]byte
		if n, _ := r.ReadAt(segment[:], int64(at)+i*elfProgramHeader); n < len(segment) {
			break
		}
		if binary.LittleEndian.Uint32(segment[:]) != elfPropertySegment {
			continue
		}
		from, length := binary.LittleEndian.Uint64(segment[8:]), binary.LittleEndian.Uint64(segment[32:])
		if from > uint64(size) || length > maxProperties {
			break
		}
		notes := make([]byte, length)
		if n, _ := r.ReadAt(notes, int64(from)); uint64(n) < length {
			break
		}
		if level := neededLevel(notes); level != "" {
			return Tie{Backend: "llvm-cpu", Arch: level}, nil
		}
	}
	return Tie{}, registry.Errorf(registry.CodeInvalid, "the shared object does not name the level of x86-64 that it needs")
}

// neededLevel is the highest level that a note of properties asks for, or "".
func neededLevel(note []byte) string {
	if len(note) < 16 || binary.LittleEndian.Uint32(note[8:]) != elfPropertyNote || string(note[12:16]) != "GNU\x00" {
		return ""
	}
	for rest := note[16:]; len(rest) >= 12; {
		kind, length := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:])
		if kind == elfISANeeded && length == 4 {
			bits := binary.LittleEndian.Uint32(rest[8:])
			for i := len(elfLevels) - 1; i >= 0; i-- {
				if bits&(1<<i) != 0 {
					return elfLevels[i]
				}
			}
			return ""
		}
		next := 8 + (uint64(length)+7)/8*8
		if next > uint64(len(rest)) {
			return ""
		}
		rest = rest[next:]
	}
	return ""
}
