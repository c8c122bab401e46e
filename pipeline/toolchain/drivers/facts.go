package drivers

import "mlpromote.dev/mlpromote/registry/toolchains"

//go:generate go run ./internal/writefacts ../../../registry/toolchains/table.go
//go:generate go run ../../../tools/toolchainstable -rows ../../../docs/toolchains.md

// Facts returns the part of all rows that programs without drivers need, in the order of the rows.
func Facts() []toolchains.Toolchain {
	var all []toolchains.Toolchain
	for _, s := range known() {
		all = append(all, toolchains.Toolchain{
			Name: s.Name, Engines: s.Profile.Name != "", Accelerators: s.Accelerators, Shares: s.Shares,
			AsIs: s.AsIs, Triton: s.Triton, Lacks: s.Lacks, Options: s.Options,
		})
	}
	return all
}
