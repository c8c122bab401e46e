package node_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/node"
)

// smi answers as nvidia-smi would: query to --query-gpu, list to -L.
func smi(query, list string) func(context.Context, string, ...string) ([]byte, error) {
	return func(_ context.Context, name string, args ...string) ([]byte, error) {
		switch {
		case name != "nvidia-smi":
			return nil, exec.ErrNotFound
		case slices.Contains(args, "-L"):
			return []byte(list), nil
		default:
			return []byte(query), nil
		}
	}
}

func describe(t *testing.T, o node.Options) artifact.Node {
	t.Helper()
	if o.Root == "" {
		o.Root = t.TempDir()
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Exec == nil {
		o.Exec = func(context.Context, string, ...string) ([]byte, error) { return nil, exec.ErrNotFound }
	}
	n, err := node.Describe(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAccelerators(t *testing.T) {
	t.Parallel()
	h200 := artifact.NodeAccelerator{Vendor: "nvidia", Product: "NVIDIA-H200", Arch: "sm_90", MemoryMiB: 143771, Driver: "580.65.06"}
	instance := func(profile string) artifact.NodeAccelerator {
		i := h200
		i.MIG, i.MemoryMiB = profile, 0
		return i
	}
	row := "0, NVIDIA H200, 9.0, 143771, 580.65.06, Disabled\n"
	for name, tc := range map[string]struct {
		query, list string
		want        []artifact.NodeAccelerator
		note        string // part of the one note; empty: no notes
	}{
		"none": {query: ""},
		"one":  {query: row, want: []artifact.NodeAccelerator{h200}},
		"two, of consumers": {
			query: "0, NVIDIA GeForce RTX 5090, 12.0, 32607, 580.65, [N/A]\n1, Tesla T4, 7.5, 15360, 580.65, [Not Supported]\n",
			want: []artifact.NodeAccelerator{
				{Vendor: "nvidia", Product: "NVIDIA-GeForce-RTX-5090", Arch: "sm_120", MemoryMiB: 32607, Driver: "580.65"},
				{Vendor: "nvidia", Product: "Tesla-T4", Arch: "sm_75", MemoryMiB: 15360, Driver: "580.65"},
			},
		},
		"memory that may not be asked for": {
			query: "0, NVIDIA H200, 9.0, [Insufficient Permissions], 580.65.06, Disabled\n",
			want:  []artifact.NodeAccelerator{{Vendor: "nvidia", Product: "NVIDIA-H200", Arch: "sm_90", Driver: "580.65.06"}},
		},
		"instances": {
			query: "0, NVIDIA H200, 9.0, 143771, 580.65.06, Enabled\n1, NVIDIA H200, 9.0, 143771, 580.65.06, Disabled\n",
			list: "GPU 0: NVIDIA H200 (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)\n" +
				"  MIG 1g.18gb     Device  0: (UUID: MIG-1a)\n  MIG 1c.3g.71gb  Device  1: (UUID: MIG-1b)\n" +
				"\nGPU 1: NVIDIA H200 (UUID: GPU-2)\n",
			want: []artifact.NodeAccelerator{instance("1g.18gb"), instance("1c.3g.71gb"), h200},
		},
		"a line that is neither": {
			query: "0, NVIDIA H200, 9.0, 143771, 580.65.06, Enabled\n", list: "GPU 0: NVIDIA H200 (UUID: GPU-2)\n  a device\n", note: "want a GPU or a MIG device",
		},
		"no instances": {
			query: "0, NVIDIA H200, 9.0, 143771, 580.65.06, Enabled\n", list: "GPU 0: NVIDIA H200 (UUID: GPU-2)\n",
			note: "GPU 0 is in MIG mode",
		},
		"instances that are none": {
			query: "0, NVIDIA H200, 9.0, 143771, 580.65.06, Enabled\n", list: "GPU 0: NVIDIA H200 (UUID: GPU-2)\n  MIG ../../x Device 0: (UUID: MIG-1)\n",
			note: "want a MIG profile",
		},
		"instance without GPU": {
			query: "0, NVIDIA H200, 9.0, 143771, 580.65.06, Enabled\n", list: "  MIG 1g.18gb Device 0: (UUID: MIG-1)\n",
			note: "under its GPU",
		},
		"no driver":            {query: "No devices were found\n", note: "1 fields"},
		"a comma in the name":  {query: "0, NVIDIA, H200, 9.0, 143771, 580.65.06, Disabled\n", note: "7 fields"},
		"a good row, a bad":    {query: row + "1, NVIDIA H200, nine, 1, 580.65.06, Disabled\n", note: "compute_cap"},
		"control characters":   {query: "0, NVIDIA \x1b[31mH200, 9.0, 1, 580.65.06, Disabled\n", note: "name"},
		"negative memory":      {query: "0, NVIDIA H200, 9.0, -1, 580.65.06, Disabled\n", note: "memory.total"},
		"memory with unit":     {query: "0, NVIDIA H200, 9.0, 143771 MiB, 580.65.06, Disabled\n", note: "memory.total"},
		"a driver of words":    {query: "0, NVIDIA H200, 9.0, 1, latest, Disabled\n", note: "driver_version"},
		"an unknown mode":      {query: "0, NVIDIA H200, 9.0, 1, 580.65.06, Perhaps\n", note: "mig.mode.current"},
		"an index without end": {query: "99999999999999999999, NVIDIA H200, 9.0, 1, 580.65.06, Disabled\n", note: "index"},
		"too many":             {query: strings.Repeat(row, 257), note: "more than 256"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := describe(t, node.Options{Exec: smi(tc.query, tc.list)})
			if diff := cmp.Diff(tc.want, n.Accelerators); diff != "" {
				t.Errorf("accelerators (-want +got):\n%s", diff)
			}
			checkNote(t, n.Notes, tc.note)
		})
	}
}

func checkNote(t *testing.T, notes []string, want string) {
	t.Helper()
	notes = slices.DeleteFunc(slices.Clone(notes), func(s string) bool { return s == node.NoteEmulated })
	switch {
	case want == "" && len(notes) != 0:
		t.Errorf("notes %q, want none", notes)
	case want != "" && (len(notes) != 1 || !strings.Contains(notes[0], want)):
		t.Errorf("notes %q, want one with %q", notes, want)
	}
}

func TestAcceleratorsWhenTheProgramFails(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, string, ...string) ([]byte, error) {
		return []byte("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nmore\n"), errors.New("exit status 9")
	}
	n := describe(t, node.Options{Exec: fails})
	if len(n.Accelerators) != 0 {
		t.Errorf("accelerators %v, want none", n.Accelerators)
	}
	checkNote(t, n.Notes, "exit status 9: NVIDIA-SMI has failed")
}

func FuzzAccelerators(f *testing.F) {
	f.Add("0, NVIDIA H200, 9.0, 143771, 580.65.06, Enabled\n", "GPU 0: NVIDIA H200 (UUID: GPU-2)\n  MIG 1g.18gb Device 0: (UUID: MIG-1)\n")
	f.Add("0, Tesla T4, 7.5, [N/A], 535.1, [N/A]\n", "")
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, query, list string) {
		n := describe(t, node.Options{Root: root, Exec: smi(query, list)})
		if len(n.Accelerators) > 0 && len(n.Notes) == 0 && strings.TrimSpace(query) == "" {
			t.Errorf("%d accelerators out of nothing", len(n.Accelerators))
		}
		checkRoundTrip(t, n)
	})
}
