package fitness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// machine writes the files that a machine has, with the ticks of user, idle and steal, and the
// frequencies of its processors in kHz.
func machine(t *testing.T, user, idle, steal int, khz ...string) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/stat", fmt.Sprintf("cpu  %d 20 30 %d 50 6 7 %d 99 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n", user, idle, steal))
	for i, f := range khz {
		write(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", i), f+"\n")
	}
	return root
}

func TestUntil(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		want          string
	}{
		"steal is a share of what was wanted, not of idle time": {machine(t, 1000, 0, 10), machine(t, 1900, 100_000, 110), "steal 0.1, 0 to 0 MHz"},
		"nothing stolen":                   {machine(t, 1000, 0, 10), machine(t, 1900, 0, 10), "steal 0, 0 to 0 MHz"},
		"a machine that does nothing":      {machine(t, 1000, 0, 10), machine(t, 1000, 500, 10), "steal unknown, 0 to 0 MHz"},
		"counters that went back":          {machine(t, 1000, 0, 10), machine(t, 900, 0, 20), "steal unknown, 0 to 0 MHz"},
		"the mean frequency of processors": {machine(t, 1, 0, 0, "3000000", "2000000"), machine(t, 2, 0, 0, "1800000", "2200000"), "steal 0, 2500 to 2000 MHz"},
		"a frequency that is no number":    {machine(t, 1, 0, 0, "3000000"), machine(t, 2, 0, 0, "<unknown>"), "steal 0, 0 to 0 MHz"},
		"a frequency of 0":                 {machine(t, 1, 0, 0, "3000000"), machine(t, 2, 0, 0, "3000000", "0"), "steal 0, 0 to 0 MHz"},
		"a frequency at the end alone":     {machine(t, 1, 0, 0), machine(t, 2, 0, 0, "3000000"), "steal 0, 0 to 0 MHz"},
		"all of it stolen":                 {machine(t, 1, 0, 10), machine(t, 1, 0, 20), "steal 1, 0 to 0 MHz"},
		"counted at the end alone":         {t.TempDir(), machine(t, 1, 0, 10), "steal unknown, 0 to 0 MHz"},
		"counted at the beginning alone":   {machine(t, 0, 0, 0), t.TempDir(), "steal unknown, 0 to 0 MHz"},
		"no such files":                    {t.TempDir(), t.TempDir(), "steal unknown, 0 to 0 MHz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := read(c.before).Until(read(c.after))
			steal := "unknown"
			if f.Steal != nil {
				steal = fmt.Sprint(*f.Steal)
			}
			if got := fmt.Sprintf("steal %s, %d to %d MHz", steal, f.MHzBefore, f.MHzAfter); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// The first line of /proc/stat has the ticks of all processors, of old kernels without those of guests.
func TestTicks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stat        string
		busy, steal uint64
		ok          bool
	}{
		"of an old kernel":        {"cpu 1 2 4 8 16 32 64 128\n", 1 + 2 + 4 + 32 + 64, 128, true},
		"with time of guests":     {"cpu  1 2 4 8 16 32 64 128 256 512\ncpu0 1", 1 + 2 + 4 + 32 + 64, 128, true},
		"without stolen time":     {"cpu 1 2 4 8 16 32 64\n", 0, 0, false},
		"of one processor":        {"cpu0 1 2 4 8 16 32 64 128\n", 0, 0, false},
		"with what is no number":  {"cpu 1 2 4 8 16 32 64 x\n", 0, 0, false},
		"with a negative number":  {"cpu 1 2 4 8 -16 32 64 128\n", 0, 0, false},
		"of what is another file": {"", 0, 0, false},
	} {
		if busy, steal, ok := ticks(c.stat); busy != c.busy || steal != c.steal || ok != c.ok {
			t.Errorf("%s: %d busy, %d stolen, %t; want %d, %d, %t", name, busy, steal, ok, c.busy, c.steal, c.ok)
		}
	}
}
