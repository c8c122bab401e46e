package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/registry/tempdir"
)

// tries returns all levels, the strongest first, each with a function that reports whether it
// works here. The function asks the kernel only once.
var tries = []struct {
	level
	works func() error
}{
	try(level{toolchain.SandboxNamespaces, true}),
	try(level{toolchain.SandboxNamespaces, false}),
	try(level{toolchain.SandboxLandlock, false}),
	try(level{toolchain.SandboxNone, false}),
}

func try(l level) struct {
	level
	works func() error
} {
	return struct {
		level
		works func() error
	}{l, sync.OnceValue(func() error { return probe(l) })}
}

// strongest returns the strongest level that works here, at most most, and why stronger ones do
// not work.
func strongest(most toolchain.Sandbox) (level, []string) {
	var lacks []string
	allowed := most == ""
	for _, t := range tries {
		if allowed = allowed || t.Sandbox == most; !allowed {
			continue
		}
		err := t.works()
		if err == nil {
			return t.level, lacks
		}
		lacks = append(lacks, fmt.Sprintf("%s: %v", t.level, err))
	}
	return level{Sandbox: toolchain.SandboxNone}, lacks
}

// probeTime bounds the probe of one level.
const probeTime = 10 * time.Second

// probe sets up an empty sandbox of the level.
func probe(l level) error {
	switch {
	case l.Sandbox == toolchain.SandboxNone:
		return nil
	case l.Sandbox == toolchain.SandboxNamespaces && !l.UserNamespace && os.Geteuid() != 0:
		return unix.EPERM
	}
	temp, err := tempdir.New("sandbox")
	if err != nil {
		return err
	}
	defer temp.Remove()
	dir := temp.Path
	folder := func(name string) string { return filepath.Join(dir, name) }
	job := Job{Dir: folder("work"), Inputs: folder("in"), Temp: folder("tmp"), Write: []string{folder("work")}}
	for _, f := range []string{job.Dir, job.Inputs, job.Temp} {
		if err := os.Mkdir(f, 0o777); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	k := keeper{orders: newOrders(job, l)}
	k.orders.Probe = true
	_, err = k.run(ctx, job)
	return err
}
