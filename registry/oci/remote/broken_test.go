package remote

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/oci/transfer"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// A release goes from one registry to another over networks that lose connections on both
// sides, with all its evidence. Neither side begins a blob anew for that.
func TestExternalBrokenConnections(t *testing.T) {
	t.Parallel()
	seeds := uint64(2)
	if os.Getenv("MLPROMOTE_SOAK") != "" {
		seeds = 50
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			far := newWatched(t, strict(t))
			c := copyOverBrokenNetworks(t, seed, far.host(), 12)
			if limit := c.size * 5 / 4; c.to.Up() > limit || c.from.Down() > limit {
				t.Errorf("%d bytes were sent and %d read for a release of %d", c.to.Up(), c.from.Down(), c.size)
			}
		})
	}
	t.Run("docker-registry", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("docker-registry"); err != nil {
			t.Skip("docker-registry is not installed (Debian: apt-get install docker-registry)")
		}
		host, stop, err := registrytest.DockerRegistry(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		copyOverBrokenNetworks(t, 1, host, 4) // it forgets an upload whose connection broke
	})
}

// broken is a copy that was made.
type broken struct {
	from, to *registrytest.Network
	size     int64 // of all content: three engines, and their image forms with the same bytes
}

// copyOverBrokenNetworks copies a release to a registry while so many connections are cut
// on either side.
func copyOverBrokenNetworks(t *testing.T, seed uint64, host string, cuts int64) broken {
	t.Helper()
	const from, to, size = "staging/" + registrytest.Model, "prod/" + registrytest.Model, 1 << 20
	near := newWatched(t, strict(t))
	good := storeOver(near.host(), host)
	r, err := good.Release(t.Context(), from, string(registrytest.Build{Salt: strings.Repeat("x", size)}.Store(t, good)))
	if err != nil {
		t.Fatal(err)
	}
	keys := registrytest.NewKeys(registrytest.RoleKeys())
	bundle := registrytest.Registry{Keys: keys}.Bundle(t, "builder", evidence.PredicateSign, struct{}{}, r.Digest)
	evidence, err := good.PutEvidence(t.Context(), from, evidence.Bundle{Data: bundle}, r.Subjects())
	if err != nil {
		t.Fatal(err)
	}
	b := broken{registrytest.NewNetwork(t, near.host(), seed, 500<<10, cuts), registrytest.NewNetwork(t, host, seed+1000, 500<<10, cuts), 2 * 3 * size}
	store := storeOverWith(b.from.Host(), b.to.Host(), transfer.Options{Chunk: 256 << 10, Pause: 10 * time.Millisecond})
	if err := store.Copy(t.Context(), from, to, r, evidence); err != nil {
		t.Fatalf("after %d and %d broken connections: %v", b.from.Broken(), b.to.Broken(), err)
	}
	if b.from.Broken() < 3 || b.to.Broken() < 3 {
		t.Errorf("%d and %d connections were broken: the test shows nothing", b.from.Broken(), b.to.Broken())
	}
	if err := good.Rehash(t.Context(), to, r); err != nil {
		t.Error(err)
	}
	for _, s := range r.Subjects() {
		if found, err := registrytest.Bundles(good.Evidence(t.Context(), to, s.Digest)); err != nil ||
			len(found) != 1 || !bytes.Equal(found[0].Data, bundle) {
			t.Errorf("evidence for %s in prod: %v, error %v", s.Name, found, err)
		}
	}
	return b
}
