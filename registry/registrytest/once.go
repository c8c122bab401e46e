package registrytest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

// TestLeases is the contract of [storage.Leases].
func TestLeases(t *testing.T, open Clocked[storage.Leases]) {
	t.Run("one holder", func(t *testing.T) {
		t.Parallel()
		leases, pass := open(t)
		acquire := func(name, holder string, lasting time.Duration, want bool) {
			t.Helper()
			got, err := leases.AcquireLease(t.Context(), name, holder, lasting)
			must(t, err)
			wantEqual(t, got, want)
		}
		acquire("a", "one", time.Minute, true)
		acquire("a", "two", time.Hour, false)
		acquire("b", "two", time.Minute, true)
		pass(30 * time.Second)
		acquire("a", "one", 90*time.Second, true) // renewed
		pass(time.Minute)
		acquire("a", "two", time.Hour, false)
		pass(30 * time.Second)
		acquire("a", "two", time.Hour, true) // run out
		acquire("a", "one", time.Hour, false)
		must(t, leases.ReleaseLease(t.Context(), "a", "one")) // another's
		acquire("a", "one", time.Hour, false)
		must(t, leases.ReleaseLease(t.Context(), "a", "two"))
		acquire("a", "one", time.Hour, true)
		must(t, leases.ReleaseLease(t.Context(), "none", "one"))
	})
	t.Run("race", func(t *testing.T) {
		t.Parallel()
		leases, _ := open(t)
		var won atomic.Int32
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				ok, err := leases.AcquireLease(t.Context(), "a", string(rune('a'+i)), time.Minute)
				if err != nil {
					t.Error(err)
				}
				if ok {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		wantEqual(t, won.Load(), int32(1))
	})
}

// TestIdempotency is the contract of [storage.Idempotency].
func TestIdempotency(t *testing.T, open Clocked[storage.Idempotency]) {
	for name, test := range map[string]func(*testing.T, storage.Idempotency, func(time.Duration)){
		"answer": testAnswerIsKept, "no body": testAnswerWithoutBody, "renew and free": testClaimsEnd, "many": testAnswersAreBounded, "race": testClaimsRace,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, pass := open(t)
			test(t, db, pass)
		})
	}
}

// claim is a claim on one key for one request.
func claim(claimant string) storage.KeyClaim {
	return storage.KeyClaim{Principal: "token:ci", Key: "k", Request: d("request"), Claimant: claimant, Lasting: time.Minute}
}

// wantClaimed wants a claim to succeed.
func wantClaimed(t *testing.T, db storage.Idempotency, c storage.KeyClaim) {
	t.Helper()
	kept, err := db.ClaimKey(t.Context(), c)
	must(t, err)
	wantEqual(t, kept, (*storage.KeptAnswer)(nil))
}

func keptAnswer() storage.KeptAnswer {
	return storage.KeptAnswer{Status: 201, Type: "application/json", Body: []byte("{\x00\xff}")}
}

func testAnswerIsKept(t *testing.T, db storage.Idempotency, pass func(time.Duration)) {
	wantClaimed(t, db, claim("one"))
	_, err := db.ClaimKey(t.Context(), claim("two"))
	wantCode(t, err, registry.CodeConflict)
	must(t, db.SaveAnswer(t.Context(), claim("one"), keptAnswer()))
	for range 2 {
		kept, err := db.ClaimKey(t.Context(), claim("three"))
		must(t, err)
		wantEqual(t, *kept, keptAnswer())
	}
	other := claim("four")
	other.Request = d("another request")
	_, err = db.ClaimKey(t.Context(), other)
	wantCode(t, err, registry.CodeInvalid)
	for _, edit := range []func(c *storage.KeyClaim){
		func(c *storage.KeyClaim) { c.Principal = "token:other" }, func(c *storage.KeyClaim) { c.Key = "K" },
		func(*storage.KeyClaim) { pass(time.Minute) },
	} {
		c := claim("five")
		edit(&c)
		wantClaimed(t, db, c)
	}
}

func testAnswerWithoutBody(t *testing.T, db storage.Idempotency, _ func(time.Duration)) {
	wantClaimed(t, db, claim("one"))
	must(t, db.SaveAnswer(t.Context(), claim("one"), storage.KeptAnswer{Status: 204}))
	kept, err := db.ClaimKey(t.Context(), claim("two"))
	must(t, err)
	wantEqual(t, []any{kept.Status, kept.Type, len(kept.Body)}, []any{204, "", 0})
}

// Of many answers, or of large ones, the newest of each principal are kept.
func testAnswersAreBounded(t *testing.T, db storage.Idempotency, pass func(time.Duration)) {
	save := func(principal, key string, size int) {
		t.Helper()
		pass(time.Millisecond)
		c := claim("one")
		c.Principal, c.Key = principal, key
		wantClaimed(t, db, c)
		must(t, db.SaveAnswer(t.Context(), c, storage.KeptAnswer{Status: 201, Type: "x", Body: make([]byte, size)}))
	}
	wantKept := func(principal, key string, want bool) {
		t.Helper()
		c := claim("two")
		c.Principal, c.Key = principal, key
		kept, err := db.ClaimKey(t.Context(), c)
		must(t, err)
		wantEqual(t, kept != nil, want)
	}
	save("other", "k", 1)
	for n := range storage.MaxKeptAnswers + 1 {
		save("many", fmt.Sprint(n), 1)
	}
	wantKept("many", "1", true)
	wantKept("many", "0", false)
	for _, key := range []string{"first", "second", "third"} {
		save("large", key, storage.MaxKeptAnswerBytes/2)
	}
	wantKept("large", "second", true)
	wantKept("large", "first", false)
	wantKept("other", "k", true)
}

func testClaimsEnd(t *testing.T, db storage.Idempotency, pass func(time.Duration)) {
	must(t, db.FreeKey(t.Context(), claim("nobody")))
	wantClaimed(t, db, claim("one"))
	must(t, db.FreeKey(t.Context(), claim("two"))) // another's
	_, err := db.ClaimKey(t.Context(), claim("two"))
	wantCode(t, err, registry.CodeConflict)
	longer := claim("one")
	longer.Lasting = time.Hour
	must(t, db.RenewKey(t.Context(), longer))
	later := claim("two")
	pass(30 * time.Minute)
	_, err = db.ClaimKey(t.Context(), later)
	wantCode(t, err, registry.CodeConflict)
	must(t, db.FreeKey(t.Context(), claim("one")))
	wantClaimed(t, db, later)
	wantCode(t, db.RenewKey(t.Context(), claim("one")), registry.CodeConflict)
	wantCode(t, db.SaveAnswer(t.Context(), claim("one"), keptAnswer()), registry.CodeConflict)
	must(t, db.SaveAnswer(t.Context(), later, keptAnswer()))
	wantCode(t, db.SaveAnswer(t.Context(), later, keptAnswer()), registry.CodeConflict) // it is answered
	must(t, db.FreeKey(t.Context(), later))                                             // an answer stays
	kept, err := db.ClaimKey(t.Context(), claim("three"))
	must(t, err)
	wantEqual(t, *kept, keptAnswer())
}

func testClaimsRace(t *testing.T, db storage.Idempotency, _ func(time.Duration)) {
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			switch _, err := db.ClaimKey(t.Context(), claim(string(rune('a'+i)))); {
			case err == nil:
				won.Add(1)
			case registry.CodeOf(err) != registry.CodeConflict:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantEqual(t, won.Load(), int32(1))
}
