package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/postgres/pgtest"
	"mlpromote.dev/mlpromote/registry/registrytest"
)

// BenchmarkMillionEngines asks catalogs of three sizes, one after the other, what resolve
// and listings ask, about releases that are spread over all, and resolves in prod beside as
// many engines. It reports the median time for each size, and the ratio of the largest to the
// smallest.
func BenchmarkMillionEngines(b *testing.B) {
	if os.Getenv("MLPROMOTE_LARGE") == "" {
		b.Skip("a million engines take minutes and gigabytes; MLPROMOTE_LARGE=1 asks for it")
	}
	server := pgtest.New(b, bulk()...)
	var catalogs []filled
	for _, engines := range []int{10_000, 100_000, 1_000_000} {
		c := filled{rows: rows{engines}, db: openURL(b, server.Database(b))}
		c.fill(b, c.db)
		c.registry = replica(b, c.db, mem.NewBlobs(), registrytest.NewKeys(registrytest.RoleKeys()))
		c.registry.Promoted(b, registrytest.Build{})
		catalogs = append(catalogs, c)
	}
	for _, q := range questions() {
		b.Run(q.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			compare(b, catalogs, func(ctx context.Context, c filled) error {
				return q.ask(ctx, c.db, c.rows, random.IntN(sample)*c.releases()/sample)
			})
		})
	}
	b.Run("resolve in prod", func(b *testing.B) {
		compare(b, catalogs, func(ctx context.Context, c filled) error {
			_, err := c.registry.Resolve(ctx, api.ResolveQuery{Environment: "prod", Model: registrytest.Model, Node: registrytest.Node("v3")})
			return err
		})
	})
}

// sample is how many releases are asked about: of every size as many, so that as much of
// each is in memory.
const sample = 1000

// filled is a database with rows and one release that can be resolved.
type filled struct {
	rows
	db       *DB
	registry registrytest.Registry
}

// compare queries all catalogs in turn, so that other load on the machine slows down all.
func compare(b *testing.B, catalogs []filled, ask func(context.Context, filled) error) {
	b.Helper()
	took := make([][]time.Duration, len(catalogs))
	for b.Loop() {
		for i, c := range catalogs {
			began := time.Now()
			if err := ask(b.Context(), c); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	var medians []float64
	for i, c := range catalogs {
		slices.Sort(took[i])
		median := float64(took[i][len(took[i])/2].Nanoseconds()) / 1000
		medians = append(medians, median)
		b.ReportMetric(median, fmt.Sprintf("us/%d", c.engines))
	}
	b.ReportMetric(medians[len(medians)-1]/medians[0], "largest/smallest")
	b.ReportMetric(0, "ns/op") // of all three together it says nothing
}
