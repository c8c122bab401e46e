package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const (
	artifactType = "application/vnd.example.bench"
	layerType    = "application/octet-stream"
	tag          = "1.0.0"
)

// repository is a new client of one repository of a server. Names are in an environment
// that mlpromote lets anybody push to.
func (s *server) repository(name string) (*remote.Repository, error) {
	scheme, host, _ := strings.Cut(s.url, "://")
	r, err := remote.NewRepository(host + "/staging/" + name)
	if err != nil {
		return nil, err
	}
	r.PlainHTTP = scheme == "http"
	client := &auth.Client{Client: s.client}
	if s.token != "" {
		client.Credential = auth.StaticCredential(host, auth.Credential{AccessToken: s.token})
	}
	r.Client = client
	return r, nil
}

// pushFile pushes a file as a blob.
func (s *server) pushFile(ctx context.Context, repository, path string, blob ocispec.Descriptor) error {
	r, err := s.repository(repository)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.Blobs().Push(ctx, blob, f)
}

// pull reads a blob to its end and throws it away.
func (s *server) pull(ctx context.Context, repository string, blob ocispec.Descriptor) error {
	r, err := s.repository(repository)
	if err != nil {
		return err
	}
	body, err := r.Blobs().Fetch(ctx, blob)
	if err != nil {
		return err
	}
	defer body.Close()
	// io.Discard would read in small pieces.
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, body, make([]byte, 1<<20))
	if err == nil && n != blob.Size {
		err = fmt.Errorf("%d bytes came, want %d", n, blob.Size)
	}
	return err
}

// tagImage pushes the manifest of an image of one layer, which is there, under a tag.
func tagImage(ctx context.Context, r *remote.Repository, layer ocispec.Descriptor, tag string) (ocispec.Descriptor, error) {
	if err := pushOnce(ctx, r, ocispec.DescriptorEmptyJSON, ocispec.DescriptorEmptyJSON.Data); err != nil {
		return ocispec.Descriptor{}, err
	}
	raw, err := manifest(layer)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	d := content.NewDescriptorFromBytes(ocispec.MediaTypeImageManifest, raw)
	return d, r.PushReference(ctx, d, bytes.NewReader(raw), tag)
}

func manifest(layer ocispec.Descriptor) ([]byte, error) {
	config := ocispec.DescriptorEmptyJSON
	config.Data = nil
	return json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: artifactType, Config: config, Layers: []ocispec.Descriptor{layer},
	})
}

// pushOnce pushes a blob that may be there.
func pushOnce(ctx context.Context, r *remote.Repository, d ocispec.Descriptor, raw []byte) error {
	there, err := r.Exists(ctx, d)
	if err != nil || there {
		return err
	}
	return r.Push(ctx, d, bytes.NewReader(raw))
}

// pushArtifacts pushes n images of one small layer, each of its own, and tags them.
func (s *server) pushArtifacts(ctx context.Context, repository string, n, workers int) error {
	r, err := s.repository(repository)
	if err != nil {
		return err
	}
	// Here, because docker-registry 2.8.2 answers 500 to those who ask for a blob at the
	// moment that it comes.
	if err := pushOnce(ctx, r, ocispec.DescriptorEmptyJSON, ocispec.DescriptorEmptyJSON.Data); err != nil {
		return err
	}
	next := atomic.Int64{}
	return atOnce(workers, func(int) error {
		for {
			i := next.Add(1)
			if i > int64(n) {
				return nil
			}
			raw := bytes.Repeat(fmt.Appendf(nil, "%s/%s/%d;", s.name, repository, i), 4096/32)
			layer := content.NewDescriptorFromBytes(layerType, raw)
			if err := r.Push(ctx, layer, bytes.NewReader(raw)); err != nil {
				return err
			}
			if _, err := tagImage(ctx, r, layer, fmt.Sprintf("1.0.%d", i)); err != nil {
				return err
			}
		}
	})
}

// attach has n clients, who know nothing of each other, attach something to one image at
// the same time. It gives how many of them are listed then.
func (s *server) attach(ctx context.Context, repository string, n int) (listed int, err error) {
	r, err := s.repository(repository)
	if err != nil {
		return 0, err
	}
	layer := content.NewDescriptorFromBytes(layerType, []byte(s.name))
	if err := r.Push(ctx, layer, bytes.NewReader([]byte(s.name))); err != nil {
		return 0, err
	}
	subject, err := tagImage(ctx, r, layer, tag)
	if err != nil {
		return 0, err
	}
	_ = atOnce(n, func(i int) error { // who fails is not listed
		alone, err := s.repository(repository)
		if err != nil {
			return err
		}
		_, err = oras.PackManifest(ctx, alone, oras.PackManifestVersion1_1, artifactType, oras.PackManifestOptions{
			Subject: &subject, ManifestAnnotations: map[string]string{"org.example.number": fmt.Sprint(i)}})
		return err
	})
	err = r.Referrers(ctx, subject, "", func(page []ocispec.Descriptor) error {
		listed += len(page)
		return nil
	})
	return listed, err
}

// mount copies an image to another repository of the server, which must move no bytes.
func (s *server) mount(ctx context.Context, from, to string) error {
	source, err := s.repository(from)
	if err != nil {
		return err
	}
	destination, err := s.repository(to)
	if err != nil {
		return err
	}
	var mounted atomic.Int64
	options := oras.DefaultCopyOptions
	options.MountFrom = func(context.Context, ocispec.Descriptor) ([]string, error) {
		return []string{source.Reference.Repository}, nil
	}
	options.OnMounted = func(context.Context, ocispec.Descriptor) error {
		mounted.Add(1)
		return nil
	}
	if _, err := oras.Copy(ctx, source, tag, destination, tag, options); err != nil {
		return err
	}
	if n := mounted.Load(); n != 2 {
		return fmt.Errorf("%d blobs were mounted, want config and layer", n)
	}
	return nil
}

// atOnce calls do n times at the same time.
func atOnce(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// pattern is size bytes without a file.
type pattern struct {
	block []byte
	at    int64
	size  int64
}

func (p *pattern) Read(b []byte) (int, error) {
	if p.at == p.size {
		return 0, io.EOF
	}
	from := p.at % int64(len(p.block))
	n := copy(b[:min(int64(len(b)), p.size-p.at)], p.block[from:])
	p.at += int64(n)
	return n, nil
}

func describe(r io.Reader) (ocispec.Descriptor, error) {
	digester := digest.Canonical.Digester()
	n, err := io.CopyBuffer(struct{ io.Writer }{digester.Hash()}, struct{ io.Reader }{r}, make([]byte, 1<<20))
	return ocispec.Descriptor{MediaType: layerType, Digest: digester.Digest(), Size: n}, err
}
