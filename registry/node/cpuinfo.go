package node

import (
	"io"
	"os"
	"strings"
)

// maxTextBytes bounds each system file that is read. /proc/cpuinfo has about 2 KiB per thread;
// the first thread is enough.
const maxTextBytes = 64 << 10

// cpuInfo is what /proc/cpuinfo reports about the first processor.
type cpuInfo struct {
	model string // "model name"
	arch  string // as GOARCH, derived from the keys that are present; empty if unknown
}

func readCPUInfo(path string) cpuInfo { return parseCPUInfo(readText(path)) }

// parseCPUInfo parses the first block. Linux writes "vendor_id" on x86 and "CPU implementer" on
// ARM.
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

// readText returns the beginning of a file, or "" if it cannot be read.
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

// printable removes characters that are not printable ASCII, so that a value can be used in a
// message, and cuts the value at 200 bytes.
func printable(s string) string {
	kept := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, s)
	return kept[:min(len(kept), 200)]
}
