// Package fitness reads what a machine does while latency is measured: the time of processors that
// went to other virtual machines, and the frequency of the processors. Whether that is too much is
// for the limits to say.
package fitness

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// Reading is the state of a machine at one moment. Its zero value knows nothing.
type Reading struct {
	Counted     bool    // whether the system counts ticks
	Busy, Steal uint64  // ticks since boot, of all processors: of work here, and of other virtual machines
	MHz         float64 // mean frequency of the processors; 0 is unknown
}

// Read reads the state of this machine. What it does not tell is unknown.
func Read() Reading { return read("/") }

// read reads below a root, for tests.
func read(root string) Reading {
	var r Reading
	text, err := os.ReadFile(filepath.Join(root, "proc/stat"))
	if err == nil {
		r.Busy, r.Steal, r.Counted = ticks(string(text))
	}
	names, _ := filepath.Glob(filepath.Join(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq")) // a fixed pattern
	for _, name := range names {
		text, _ := os.ReadFile(name)                                         // of a file that cannot be read: none
		khz, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32) // of what is no number: 0
		if khz == 0 {
			return Reading{r.Counted, r.Busy, r.Steal, 0}
		}
		r.MHz += float64(khz) / 1000 / float64(len(names))
	}
	return r
}

// ticks reads the first line of /proc/stat (proc_stat(5)): cpu user nice system idle iowait irq
// softirq steal. Time of guests is part of user.
func ticks(stat string) (busy, steal uint64, ok bool) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, false
	}
	var values [8]uint64
	for i := range values {
		n, err := strconv.ParseUint(fields[i+1], 10, 64)
		if err != nil {
			return 0, 0, false
		}
		values[i] = n
	}
	const user, nice, system, irq, softirq = 0, 1, 2, 5, 6
	for _, i := range []int{user, nice, system, irq, softirq} {
		busy += values[i]
	}
	return busy, values[7], true
}

// Until says what happened from r to a later reading.
func (r Reading) Until(later Reading) evidence.Fitness {
	var f evidence.Fitness
	busy, steal := later.Busy-r.Busy, later.Steal-r.Steal
	if r.Counted && later.Counted && later.Busy >= r.Busy && later.Steal >= r.Steal && busy+steal > 0 {
		share := evidence.Figure(math.Round(1e4*float64(steal)/float64(busy+steal)) / 1e4)
		f.Steal = &share
	}
	if r.MHz > 0 && later.MHz > 0 {
		f.MHzBefore, f.MHzAfter = int(math.Round(r.MHz)), int(math.Round(later.MHz))
	}
	return f
}
