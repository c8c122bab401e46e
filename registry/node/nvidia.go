package node

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry/artifact"
)

// gpuFields are the fields of nvidia-smi's --query-gpu, in the order that parseGPUs reads.
const gpuFields = "index,name,compute_cap,memory.total,driver_version,mig.mode.current"

// maxGPUs is more devices than one machine holds.
const maxGPUs = 256

var (
	productPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._+()/-]{0,94}$`)
	capabilityPattern = regexp.MustCompile(`^([0-9]{1,2})\.([0-9])$`)
	driverPattern     = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6}){1,3}$`)
	// profilePattern is a MIG profile: "1g.18gb", "1c.3g.20gb", "1g.10gb+me".
	profilePattern = regexp.MustCompile(`^([0-9]c\.)?[0-9]g\.[0-9]{1,3}gb([+-][a-z.]{1,12})?$`)
	gpuLinePattern = regexp.MustCompile(`^GPU ([0-9]{1,3}): `)
	migLinePattern = regexp.MustCompile(`^\s+MIG (\S+)\s+Device\s+[0-9]{1,3}: `)
)

// gpu is one row of nvidia-smi.
type gpu struct {
	index  int
	mig    bool // partitioned: only its MIG instances can be used
	device artifact.NodeAccelerator
}

// nvidia lists NVIDIA GPUs. Without nvidia-smi the list is empty. If nvidia-smi fails or its
// output cannot be parsed, the list is empty and a note has the reason.
func nvidia(ctx context.Context, run func(context.Context, string, ...string) ([]byte, error)) ([]artifact.NodeAccelerator, []string) {
	out, err := run(ctx, "nvidia-smi", "--query-gpu="+gpuFields, "--format=csv,noheader,nounits")
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, []string{smiNote("--query-gpu", err, out)}
	}
	gpus, err := parseGPUs(string(out))
	if err != nil {
		return nil, []string{smiNote("--query-gpu", err, nil)}
	}
	profiles := map[int][]string{}
	for _, g := range gpus {
		if !g.mig {
			continue
		}
		if out, err = run(ctx, "nvidia-smi", "-L"); err == nil {
			profiles, err = parseMIG(string(out))
		}
		if err != nil {
			return nil, []string{smiNote("-L", err, nil)}
		}
		break
	}
	return devices(gpus, profiles)
}

// devices lists whole devices, and the MIG instances of partitioned ones. The memory of an
// instance is unknown: nvidia-smi does not list it, and the figure in the profile's name is
// rounded.
func devices(gpus []gpu, profiles map[int][]string) (list []artifact.NodeAccelerator, notes []string) {
	for _, g := range gpus {
		if !g.mig {
			list = append(list, g.device)
			continue
		}
		if len(profiles[g.index]) == 0 {
			notes = append(notes, fmt.Sprintf("nvidia: GPU %d is in MIG mode and has no instance", g.index))
		}
		for _, profile := range profiles[g.index] {
			instance := g.device
			instance.MIG, instance.MemoryMiB = profile, 0
			list = append(list, instance)
		}
	}
	return list, notes
}

func smiNote(what string, err error, out []byte) string {
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return printable(strings.TrimSuffix(fmt.Sprintf("nvidia-smi %s: %v: %s", what, err, first), ": "))
}

// parseGPUs reads rows such as "0, NVIDIA H200, 9.0, 143771, 580.65.06, Disabled". A row that
// it cannot parse makes it discard all rows.
func parseGPUs(text string) ([]gpu, error) {
	var gpus []gpu
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if len(gpus) == maxGPUs {
			return nil, fmt.Errorf("more than %d devices", maxGPUs)
		}
		g, err := parseGPU(line)
		if err != nil {
			return nil, fmt.Errorf("row %q: %w", printable(line), err)
		}
		gpus = append(gpus, g)
	}
	return gpus, nil
}

func parseGPU(line string) (gpu, error) {
	fields := strings.Split(line, ",")
	if len(fields) != 6 {
		return gpu{}, fmt.Errorf("%d fields, want 6 (%s)", len(fields), gpuFields)
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	index, err := strconv.Atoi(fields[0])
	capability := capabilityPattern.FindStringSubmatch(fields[2])
	switch {
	case err != nil || index < 0 || index >= maxGPUs:
		return gpu{}, fmt.Errorf("index %q: want a small number", fields[0])
	case !productPattern.MatchString(fields[1]):
		return gpu{}, fmt.Errorf("name %q: want a product name", fields[1])
	case capability == nil:
		return gpu{}, fmt.Errorf("compute_cap %q: want MAJOR.MINOR", fields[2])
	case !driverPattern.MatchString(fields[4]):
		return gpu{}, fmt.Errorf("driver_version %q: want numbers separated by dots", fields[4])
	}
	memory, err := parseMemory(fields[3])
	if err != nil {
		return gpu{}, err
	}
	if fields[5] != "Enabled" && fields[5] != "Disabled" && !absent(fields[5]) {
		return gpu{}, fmt.Errorf("mig.mode.current %q: want Enabled, Disabled or [N/A]", fields[5])
	}
	return gpu{index: index, mig: fields[5] == "Enabled", device: artifact.NodeAccelerator{
		Vendor: "nvidia",
		// As GPU feature discovery writes the label nvidia.com/gpu.product.
		Product:   strings.ReplaceAll(fields[1], " ", "-"),
		Arch:      "sm_" + capability[1] + capability[2],
		MemoryMiB: memory,
		Driver:    fields[4],
	}}, nil
}

// parseMemory reads MiB. nvidia-smi may not report it in a container that was given a MIG
// instance.
func parseMemory(field string) (int64, error) {
	if absent(field) {
		return 0, nil
	}
	mib, err := strconv.ParseInt(field, 10, 64)
	if err != nil || mib < 0 || mib > 1<<40 {
		return 0, fmt.Errorf("memory.total %q: want MiB", field)
	}
	return mib, nil
}

// absent reports whether a field of nvidia-smi has no value.
func absent(field string) bool {
	switch field {
	case "[N/A]", "N/A", "[Not Supported]", "[Insufficient Permissions]":
		return true
	}
	return false
}

// parseMIG reads the profiles of the instances of each device from nvidia-smi -L:
//
//	GPU 0: NVIDIA H200 (UUID: GPU-…)
//	  MIG 1g.18gb     Device  0: (UUID: MIG-…)
func parseMIG(text string) (map[int][]string, error) {
	profiles := map[int][]string{}
	index, count := -1, 0
	for line := range strings.Lines(text) {
		if m := gpuLinePattern.FindStringSubmatch(line); m != nil {
			index, _ = strconv.Atoi(m[1]) // at most three digits, as the pattern says
			continue
		}
		m := migLinePattern.FindStringSubmatch(line)
		switch {
		case m == nil && strings.TrimSpace(line) == "":
			continue
		case m == nil:
			return nil, fmt.Errorf("line %q: want a GPU or a MIG device", printable(line))
		case index < 0 || !profilePattern.MatchString(m[1]):
			return nil, fmt.Errorf("line %q: want a MIG profile such as 1g.18gb under its GPU", printable(line))
		}
		if count++; count > maxGPUs {
			return nil, fmt.Errorf("more than %d MIG devices", maxGPUs)
		}
		profiles[index] = append(profiles[index], m[1])
	}
	return profiles, nil
}
