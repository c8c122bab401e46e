package node_test

import "strings"

// kernelFlags reads the flags of the first processor in /proc/cpuinfo. The kernel
// calls ARM's vector unit asimd as we do; SSE's names are its own too.
func kernelFlags(cpuinfo string) map[string]bool {
	flags := map[string]bool{}
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		if k := strings.TrimSpace(key); k != "flags" && k != "Features" {
			continue
		}
		for _, f := range strings.Fields(value) {
			flags[f] = true
		}
		return flags
	}
	return flags
}
