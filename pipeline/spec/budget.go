package spec

import (
	"maps"
	"slices"

	"mlpromote.dev/mlpromote/registry/toolchains"
)

// Budget is what one step of a toolchain may take. Zero fields are the toolchain's own.
type Budget struct {
	Time   Duration `yaml:"time" doc:"How long a step may take, such as 45m; it is stopped then"`
	Cores  int64    `yaml:"cores" doc:"How many cores are kept free for a step"`
	Memory Size     `yaml:"memory" doc:"What a process of a step may write to and what is kept free for it, such as 8GiB"`
	GPUs   int64    `yaml:"gpus" doc:"How many accelerators are kept free for a step"`
}

// checkBudgets checks that budgets are of toolchains that there are.
func (c checker) checkBudgets() {
	known := slices.Concat(toolchains.Names(func(toolchains.Toolchain) bool { return true }), c.others)
	for _, name := range slices.Sorted(maps.Keys(c.Budgets)) {
		c.oneOf(at("budgets", name), "toolchain", name, known, nil)
		b := c.Budgets[name]
		if b.Cores < 0 || b.Cores > maxCores {
			c.problem(at("budgets", name, "cores"), "%d cores: want 1 to %d", b.Cores, maxCores)
		}
		if b.GPUs < 0 || b.GPUs > maxCores {
			c.problem(at("budgets", name, "gpus"), "%d accelerators: want 1 to %d", b.GPUs, maxCores)
		}
	}
}

// maxCores bounds what a step may be given.
const maxCores = 4096
