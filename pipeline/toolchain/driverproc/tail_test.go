package driverproc

import (
	"testing"
	"time"
)

// The last lines of a log are those that say something: no progress bars, and nothing behind a crash.
func TestLastLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ log, want string }{
		"as it is":      {"loading\nno such file\n", "loading\nno such file"},
		"progress bars": {"loading\n\n  0%|          | 0/6 [00:00<?, ?it/s]\n 50%|#####     | 3/6 [00:01<00:01,  2.91it/s]\nit broke\n\n", "loading\n\nit broke"},
		"slow bars":     {"quantize:  10%|#  | 1/10 [00:07<01:03,  7.01s/it, loss=0.2]no memory", "no memory"},
		"without a sum": {"34it [1:00:02, 12.5MB/s]\nno memory", "no memory"},
		"bars alone":    {" 50%|#####     | 3/6 [00:01<00:01,  2.91it/s]\n", ""},
		"a clock":       {"[12:30:01] cannot open a/b", "[12:30:01] cannot open a/b"},
		"a crash":       {"began\nSIGSEGV: segmentation violation\nPC=0x1\n", "began\nSIGSEGV: segmentation violation"},
	} {
		if got := lastLines(visible(c.log)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1680348610: "1.7s", 3 * time.Second: "3s", 90*time.Second + 12345678: "1m30s", 12345678: "12.3ms", 1: "1ns", 0: "0s",
		-1: "-1ns", -12345678: "-12.3ms", -1680348610: "-1.7s",
	} {
		if got := short(d).String(); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}
