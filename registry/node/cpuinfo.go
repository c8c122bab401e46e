package node

import (
	"io"
	"os"
	"strings"
)

// maxTextBytes bounds every file of the system that is read. /proc/cpuinfo takes
// about 2 KiB for a thread; the first one is enough.
const maxTextBytes = 64 << 10

// cpuInfo is what /proc/cpuinfo says of the first processor.
type cpuInfo struct {
	model string // "model name"
	arch  string // as GOARCH, seen from which keys there are; empty if unknown
}

func readCPUInfo(path string) cpuInfo { return parseCPUInfo(readText(path)) }

// parseCPUInfo reads the first block. Linux writes "vendor_id" on x86 and
// "CPU implementer" on ARM, and neither on the other.
func parseCPUInfo(text string) cpuInfo {
	var info cpuInfo
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			if info != (cpuInfo{}) {
				return info
			}
			continue
		}
		switch strings.TrimSpace(key) {
		case "model name":
			info.model = printable(strings.Join(strings.Fields(value), " "))
		case "vendor_id":
			info.arch = "amd64"
		case "CPU implementer":
			info.arch = "arm64"
		}
	}
	return info
}

// readText gives the beginning of a file, or nothing.
func readText(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxTextBytes))
	if err != nil {
		return ""
	}
	return string(data)
}

// printable drops what is no printable ASCII, so that a fact can stand in a message,
// and what a fact could never need: more than 200 bytes.
func printable(s string) string {
	kept := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
	return kept[:min(len(kept), 200)]
}
