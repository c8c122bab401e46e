package registry_test

import (
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
)

func TestClaimsFuture(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[time.Duration]bool{
		-time.Hour: false, 0: false, 5 * time.Minute: false, 5*time.Minute + 1: true, 1000 * time.Hour: true,
	}
	for ahead, want := range cases {
		if got := registry.ClaimsFuture(now.Add(ahead), now); got != want {
			t.Errorf("%v ahead: got %t, want %t", ahead, got, want)
		}
	}
}
