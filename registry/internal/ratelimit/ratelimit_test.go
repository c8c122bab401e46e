package ratelimit

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// However many callers there are, few are remembered, and those who are at their limit
// longest.
func TestLimiterIsBounded(t *testing.T) {
	t.Parallel()
	l, now := New(Rate{PerSecond: 1, Burst: 1}), time.Now()
	take := func(who int, at time.Time) bool { return l.Take(strconv.Itoa(who), at) == 0 }
	for who := range maxCallers {
		if !take(who, now) {
			t.Fatal("a caller waits for others")
		}
	}
	later := now.Add(time.Minute)
	if !take(0, later) || take(0, later) {
		t.Fatal("a caller is not limited")
	}
	for who := maxCallers; who < 2*maxCallers; who++ {
		if !take(who, later) {
			t.Fatal("a caller waits for others")
		}
	}
	if n := len(l.callers); n > maxCallers {
		t.Errorf("%d callers are remembered, want at most %d", n, maxCallers)
	}
}

// To ask how long one would wait counts for nothing, and says what there is to wait for.
func TestWait(t *testing.T) {
	t.Parallel()
	l, now := New(Rate{PerSecond: 0.5, Burst: 2}), time.Now()
	for range 5 {
		if wait := l.Wait("a", now); wait != 0 {
			t.Fatalf("somebody who did nothing waits %v", wait)
		}
	}
	l.Take("a", now)
	if wait := l.Wait("a", now); wait != 0 {
		t.Errorf("after one of two: %v", wait)
	}
	l.Take("a", now)
	for _, after := range []time.Duration{0, time.Second, 2 * time.Second} {
		if wait := l.Wait("a", now.Add(after)); wait != 2*time.Second-after {
			t.Errorf("after %v: %v", after, wait)
		}
	}
	if wait := l.Wait("b", now); wait != 0 || (*Limiter)(nil).Wait("a", now) != 0 || (*Limiter)(nil).Take("a", now) != 0 {
		t.Errorf("others wait, %v", wait)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"192.0.2.1:1000": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1", "@": "@", "": "",
		"[2001:db8:1:2:3::4]:1000": "2001:db8:1:2::/64", "[2001:db8:1:2:ffff::]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64",
	} {
		if got := Address(&http.Request{RemoteAddr: from}); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
}
