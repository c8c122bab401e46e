package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	source = "source" // repository of the image that is read and mounted
	often  = 3        // times as many rounds of what is over soon
)

// fleet starts every peer, below root.
func fleet(ctx context.Context, root string, peers []peer) (running []*server, stop func(), err error) {
	stop = func() {
		for _, s := range running {
			s.stop()
		}
	}
	for _, p := range peers {
		s, err := p.run(ctx, root)
		if err != nil {
			stop()
			return nil, nil, err
		}
		running = append(running, s)
	}
	return running, stop, nil
}

// measureSmall pushes many small artifacts to servers that run all the while.
func (b *bench) measureSmall(ctx context.Context) error {
	for _, m := range []struct{ what, root string }{{rowSmallDisk, b.disk}, {rowSmallMemory, b.memory}} {
		running, stop, err := fleet(ctx, m.root, b.registries())
		if err != nil {
			return err
		}
		var all []contestant
		for _, s := range running {
			all = append(all, contestant{s.name, func(ctx context.Context, round int) error {
				return b.timedCPU(m.what, s, func() error {
					return s.pushArtifacts(ctx, fmt.Sprintf("small%d", round), b.artifacts, b.workers)
				})
			}})
		}
		err = compare(ctx, m.what, often*b.rounds, all)
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// measureReads measures what is done with an image that is there.
func (b *bench) measureReads(ctx context.Context) error {
	running, stop, err := fleet(ctx, b.disk, b.registries())
	if err != nil {
		return err
	}
	defer stop()
	for _, s := range running {
		r, err := s.repository(source)
		if err == nil {
			err = s.pushFile(ctx, source, b.source, b.content)
		}
		if err == nil {
			_, err = tagImage(ctx, r, b.content, tag)
		}
		if err != nil {
			return fmt.Errorf("push to %s: %w", s.name, err)
		}
	}
	raw, err := manifest(b.content)
	if err != nil {
		return err
	}
	file := filepath.Join(b.disk, "manifest.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return err
	}
	files := map[string]string{
		"v2/staging/" + source + "/blobs/" + string(b.content.Digest): b.source,
		"v2/staging/" + source + "/manifests/" + tag:                  file,
	}
	others, stopOthers, err := fleet(ctx, b.disk, []peer{
		nginxPeer(files, ocispec.MediaTypeImageManifest), nginxSecuredPeer(files, ocispec.MediaTypeImageManifest), emptyPeer(),
	})
	if err != nil {
		return err
	}
	defer stopOthers()
	nginx, nginxSecured, empty := others[0], others[1], others[2]
	return errors.Join(
		b.measurePulls(ctx, append([]*server{nginx, nginxSecured}, running...)),
		b.measureManifests(ctx, append([]*server{nginx, empty}, running...), int64(len(raw))),
		b.measureMounts(ctx, running),
		b.measureAttaches(ctx, running))
}

func (b *bench) measurePulls(ctx context.Context, servers []*server) error {
	if !b.wants("pull") {
		return nil
	}
	var all []contestant
	for _, s := range servers {
		all = append(all, contestant{s.name, func(ctx context.Context, _ int) error {
			return b.timedCPU(rowPull, s, func() error { return s.pull(ctx, source, b.content) })
		}})
	}
	return compare(ctx, rowPull, often*b.rounds, all)
}

func (b *bench) measureManifests(ctx context.Context, servers []*server, size int64) error {
	if !b.wants("manifest") {
		return nil
	}
	var all []contestant
	for _, s := range servers {
		all = append(all, contestant{s.name, func(ctx context.Context, _ int) error {
			size := size
			if s.name == nothing {
				size = int64(len("{}"))
			}
			rate, _, err := s.load(ctx, "/v2/staging/"+source+"/manifests/"+tag, ocispec.MediaTypeImageManifest, size, b.conns, b.get)
			b.results.add(rowManifest, "k requests/s", s.name, rate/1000)
			return err
		}})
	}
	return compare(ctx, rowManifest, b.rounds, all)
}

func (b *bench) measureMounts(ctx context.Context, servers []*server) error {
	if !b.wants("mount") {
		return nil
	}
	var all []contestant
	for _, s := range servers {
		all = append(all, contestant{s.name, func(ctx context.Context, round int) error {
			before, err := s.written()
			if err != nil {
				return err
			}
			began := time.Now()
			if err := s.mount(ctx, source, fmt.Sprintf("mount%d", round)); err != nil {
				return err
			}
			b.results.add(rowMount, "ms", s.name, float64(time.Since(began).Microseconds())/1000)
			after, err := s.written()
			b.results.add(rowWritten, "KiB", s.name, float64((after-before)>>10))
			return err
		}})
	}
	return compare(ctx, rowMount, often*b.rounds, all)
}

func (b *bench) measureAttaches(ctx context.Context, servers []*server) error {
	if !b.wants("attach") {
		return nil
	}
	var all []contestant
	for _, s := range servers {
		all = append(all, contestant{s.name, func(ctx context.Context, round int) error {
			n, err := s.attach(ctx, fmt.Sprintf("attach%d", round), attaches)
			b.results.add(rowAttach, fmt.Sprintf("of %d", attaches), s.name, float64(n))
			return err
		}})
	}
	return compare(ctx, rowAttach, b.rounds, all)
}

// measureMemory pushes once to each server, after a small push that is not counted.
func (b *bench) measureMemory(ctx context.Context) error {
	blob, err := describe(&pattern{block: b.block, size: b.rss})
	if err != nil {
		return err
	}
	first, err := describe(&pattern{block: b.block, size: int64(len(b.block))})
	if err != nil {
		return err
	}
	for _, p := range b.registries() {
		if err := b.memoryOf(ctx, p, first, blob); err != nil {
			return fmt.Errorf("%s, %s: %w", rowMemory, p.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", rowMemory, p.name)
	}
	return nil
}

func (b *bench) memoryOf(ctx context.Context, p peer, blobs ...ocispec.Descriptor) error {
	s, err := p.run(ctx, b.disk)
	if err != nil {
		return err
	}
	defer s.stop()
	r, err := s.repository("memory")
	if err != nil {
		return err
	}
	var before, after int64
	for _, blob := range blobs {
		if before, err = s.resetPeak(); err != nil {
			return err
		}
		if err := r.Push(ctx, blob, &pattern{block: b.block, size: blob.Size}); err != nil {
			return err
		}
		if after, err = s.peakRSS(); err != nil {
			return err
		}
	}
	b.results.add(rowMemory, "MiB", p.name, float64(after-before)/(1<<20))
	return nil
}
