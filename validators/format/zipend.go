package format

import (
	"bytes"
	"encoding/binary"
)

// zipPlace is where a reader of an archive finds its directory, and what it adds to all offsets.
type zipPlace struct{ start, base int64 }

// The signatures of an archive's end, and the lengths of what stands there (APPNOTE.TXT, 4.3.12 to
// 4.3.16).
const (
	zipCentral   = "PK\x01\x02"
	zipEnd       = "PK\x05\x06"
	zip64Locator = "PK\x06\x07"
	zip64End     = "PK\x06\x06"

	zipEndBytes, zip64LocatorBytes, zip64EndBytes = 22, 20, 56
)

// zipHides reports whether Python's zipfile finds a directory where Go's reader, which ended with err,
// has not looked.
func zipHides(src *source, err error) bool {
	at, end := src.zipEnd()
	if end == nil {
		return false
	}
	size, offset := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	plain := zipPlace{at - size, at - size - offset}
	python, golang := plain, plain
	if locator := src.signed(at-zip64LocatorBytes, zip64LocatorBytes, zip64Locator); locator != nil {
		if record := src.signed(at-zip64LocatorBytes-zip64EndBytes, zip64EndBytes, zip64End); record != nil {
			python = zip64Place(record, at-zip64LocatorBytes-zip64EndBytes)
		}
		if binary.LittleEndian.Uint16(end[10:]) == 0xffff || size == 0xffff || offset == 0xffffffff {
			from := int64(binary.LittleEndian.Uint64(locator[8:]))
			if record := src.signed(from, zip64EndBytes, zip64End); record != nil {
				golang = zip64Place(record, from)
			}
		}
	}
	if offset := golang.start - golang.base; golang.base > 0 && src.signed(offset, 4, zipCentral) != nil {
		golang = zipPlace{start: offset}
	}
	there := src.signed(python.start, 4, zipCentral) != nil
	if err != nil {
		return there || src.signed(offset, 4, zipCentral) != nil
	}
	return there && python != golang
}

// zipEnd returns the last record of an archive's end, which Python takes also if its comment is cut,
// and its place.
func (s *source) zipEnd() (int64, []byte) {
	tail := make([]byte, min(s.size, zipEndBytes+1<<16))
	from := s.size - int64(len(tail))
	n, _ := s.ReadAt(tail, from)
	i := bytes.LastIndex(tail[:max(0, n-zipEndBytes+len(zipEnd))], []byte(zipEnd))
	if i < 0 {
		return 0, nil
	}
	return from + int64(i), tail[i : i+zipEndBytes]
}

// signed returns n bytes, if they are there and begin with a signature.
func (s *source) signed(at, n int64, signature string) []byte {
	if at < 0 || at > s.size-n {
		return nil
	}
	data := make([]byte, n)
	if got, _ := s.ReadAt(data, at); got < len(data) || !bytes.HasPrefix(data, []byte(signature)) {
		return nil
	}
	return data
}

// zip64Place is what a record of a large archive says, which stands behind the directory.
func zip64Place(record []byte, at int64) zipPlace {
	size, offset := int64(binary.LittleEndian.Uint64(record[40:])), int64(binary.LittleEndian.Uint64(record[48:]))
	return zipPlace{at - size, at - size - offset}
}
