package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// What is measured.
const (
	rowPushDisk    = "push, disk"
	rowPushMemory  = "push, tmpfs"
	rowPull        = "pull"
	rowSmallDisk   = "small artifacts, disk"
	rowSmallMemory = "small artifacts, tmpfs"
	rowManifest    = "manifest GET by tag"
	rowResolve     = "resolve"
	rowResolveOne  = "resolve, 1 connection"
	rowMount       = "mount of the artifact in another repository"
	rowWritten     = "written to disk by that mount"
	rowMemory      = "memory that a push adds"
	rowAttach      = "attached at once and listed"
	attaches       = 32
)

// bench measures.
type bench struct {
	config
	sizes
	results results
	disk    string             // a folder of ours on a disk
	memory  string             // and one in memory
	source  string             // the file that is pushed
	content ocispec.Descriptor // of it
	block   []byte             // of bytes that are pushed without a file
}

func newBench(c config, n sizes) (*bench, error) {
	b := &bench{config: c, sizes: n, block: make([]byte, 1<<20)}
	_, _ = rand.Read(b.block) // never fails
	var err, err2 error
	b.disk, err = os.MkdirTemp(c.disk, "benchregistry-*")
	b.memory, err2 = os.MkdirTemp(c.memory, "benchregistry-*")
	if err := errors.Join(err, err2); err != nil {
		return nil, errors.Join(err, b.close())
	}
	for _, p := range c.registries() {
		b.results.columns = append(b.results.columns, p.name)
	}
	b.results.title = fmt.Sprintf("%d rounds; blobs of %d MiB, %d artifacts by %d workers, %d connections, %d MiB for memory",
		n.rounds, n.blob>>20, n.artifacts, n.workers, n.conns, n.rss>>20)
	return b, nil
}

func (b *bench) close() error {
	return errors.Join(remove(b.disk), remove(b.memory))
}

func remove(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

// measure does all that is asked for.
func (b *bench) measure(ctx context.Context) error {
	if err := b.makeSource(); err != nil {
		return err
	}
	for _, m := range []struct {
		names string
		do    func(ctx context.Context) error
	}{
		{"push", b.measurePushes},
		{"small", b.measureSmall},
		{"pull manifest mount attach", b.measureReads},
		{"resolve", b.measureResolves},
		{"memory", b.measureMemory},
	} {
		if b.only != "" && !strings.Contains(m.names, b.only) {
			continue
		}
		if err := m.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) wants(name string) bool { return b.only == "" || strings.Contains(name, b.only) }

// makeSource writes the file that is pushed. It stays in the cache of the system.
func (b *bench) makeSource() error {
	b.source = filepath.Join(b.disk, "source")
	f, err := os.Create(b.source)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, io.LimitReader(rand.Reader, b.blob)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	b.content, err = describe(f)
	return err
}

// contestant takes part in every round of a measurement. It adds to the results itself.
type contestant struct {
	name string
	once func(ctx context.Context, round int) error
}

// compare has every contestant once per round, in random order.
func compare(ctx context.Context, what string, rounds int, contestants []contestant) error {
	for round := range rounds {
		//nolint:gosec // no secret is drawn
		mathrand.Shuffle(len(contestants), func(i, j int) { contestants[i], contestants[j] = contestants[j], contestants[i] })
		for _, c := range contestants {
			if err := c.once(ctx, round); err != nil {
				return fmt.Errorf("%s, %s: %w", what, c.name, err)
			}
		}
		fmt.Fprintf(os.Stderr, "%s: round %d of %d\n", what, round+1, rounds)
	}
	return nil
}

// timed adds the seconds that do takes.
func (b *bench) timed(what, column string, do func() error) error {
	began := time.Now()
	err := do()
	b.results.add(what, "s", column, time.Since(began).Seconds())
	return err
}

// timedCPU adds the seconds that do takes, and those that the server works for it.
func (b *bench) timedCPU(what string, s *server, do func() error) error {
	before, err := s.cpu()
	if err != nil {
		return err
	}
	if err := b.timed(what, s.name, do); err != nil {
		return err
	}
	after, err := s.cpu()
	b.results.add(what+", processor time of the server", "s", s.name, (after - before).Seconds())
	return err
}

// measurePushes gives every push a server and a folder of its own.
func (b *bench) measurePushes(ctx context.Context) error {
	for _, m := range []struct{ what, root string }{{rowPushDisk, b.disk}, {rowPushMemory, b.memory}} {
		var all []contestant
		what, root := m.what, m.root
		for _, p := range b.registries() {
			all = append(all, contestant{p.name, func(ctx context.Context, _ int) error {
				s, err := p.run(ctx, root)
				if err != nil {
					return err
				}
				defer s.stop()
				return b.timedCPU(what, s, func() error { return s.pushFile(ctx, "push", b.source, b.content) })
			}})
		}
		all = append(all, contestant{hashing, func(context.Context, int) error {
			return b.timed(what, hashing, func() error {
				f, err := os.Open(b.source)
				if err != nil {
					return err
				}
				defer f.Close()
				_, err = describe(f)
				return err
			})
		}})
		all = append(all, contestant{writing, func(context.Context, int) error {
			return b.timed(what, writing, func() error { return copyDurably(b.source, filepath.Join(root, "copy")) })
		}})
		if err := compare(ctx, what, b.rounds, all); err != nil {
			return err
		}
	}
	return nil
}

// copyDurably copies a file as a registry must, and removes the copy.
func copyDurably(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	return errors.Join(err, w.Sync(), w.Close(), os.Remove(to))
}
