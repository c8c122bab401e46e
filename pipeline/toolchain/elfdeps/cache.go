package elfdeps

import (
	"bytes"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
)

// maxCacheBytes is far above the size of any ld.so.cache.
const maxCacheBytes = 64 << 20

// Format of the cache of glibc's loader, version 2 (sysdeps/generic/dl-cache.h): a magic
// string, the number of entries, the length of the strings, 20 bytes, and the entries. Each
// entry has the offsets, from the magic string, of the name and the path of a library. A cache
// in the old format may come before it.
const (
	cacheMagic  = "glibc-ld.so.cache1.1"
	headerBytes = 48
	entryBytes  = 24
)

// readCache reads the files of each name in the loader's cache. Errors: those of reading, and
// fs.ErrInvalid if it is not such a cache.
func readCache(path string) (map[string][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCacheBytes))
	if err != nil {
		return nil, err
	}
	return parseCache(path, data)
}

func parseCache(path string, data []byte) (map[string][]string, error) {
	invalid := &fs.PathError{Op: "read the loader's cache", Path: path, Err: fs.ErrInvalid}
	start := bytes.Index(data, []byte(cacheMagic))
	if start < 0 || len(data)-start < headerBytes {
		return nil, invalid
	}
	data = data[start:]
	count := int64(binary.NativeEndian.Uint32(data[len(cacheMagic):]))
	if headerBytes+count*entryBytes > int64(len(data)) {
		return nil, invalid
	}
	cache := make(map[string][]string)
	for i := range count {
		entry := data[headerBytes+i*entryBytes:]
		name, okName := textAt(data, binary.NativeEndian.Uint32(entry[4:]))
		file, okFile := textAt(data, binary.NativeEndian.Uint32(entry[8:]))
		if !okName || !okFile {
			return nil, invalid
		}
		cache[name] = append(cache[name], file)
	}
	return cache, nil
}

// textAt reads a string that ends with a zero byte.
func textAt(data []byte, offset uint32) (string, bool) {
	if int64(offset) >= int64(len(data)) {
		return "", false
	}
	text, _, ok := bytes.Cut(data[offset:], []byte{0})
	return string(text), ok
}
