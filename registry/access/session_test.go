package access_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/access"
	"mlpromote.dev/mlpromote/registry/mem"
	"mlpromote.dev/mlpromote/registry/storage"
)

// session mints a session of a token until an hour after noon, and stores it.
func session(t *testing.T, sessions storage.Sessions) (storage.Session, string) {
	t.Helper()
	s, text, err := access.MintSession(storage.Session{Owner: "token a", Token: "a", Created: noon, Expires: noon.Add(time.Hour)})
	if err == nil {
		err = sessions.CreateSession(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, text
}

func TestSessionsLastUntilTheyExpire(t *testing.T) {
	t.Parallel()
	sessions := mem.New()
	s, text := session(t, sessions)
	other, otherText := session(t, sessions)
	if s.ID == other.ID || s.Hash == other.Hash {
		t.Errorf("two sessions have the ID or the secret in common: %s and %s", s.ID, other.ID)
	}
	_, secret, _ := strings.Cut(text, ".")
	for name, c := range map[string]struct {
		text string
		at   time.Time
		id   string // of the session; empty: it is refused
	}{
		"at first":                       {text, noon, s.ID},
		"in its last second":             {text, noon.Add(time.Hour - time.Second), s.ID},
		"when it expires":                {text, noon.Add(time.Hour), ""},
		"another one":                    {otherText, noon, other.ID},
		"the secret of another one":      {other.ID + "." + secret, noon, ""},
		"no secret":                      {s.ID + ".", noon, ""},
		"an ID alone":                    {s.ID, noon, ""},
		"a secret with something behind": {text + "a", noon, ""},
		"an unknown ID":                  {"aaaaaaaaaaaaaaaa." + secret, noon, ""},
		"an ID that is none":             {"token a." + secret, noon, ""},
		"a very long text":               {text + strings.Repeat("a", 1<<20), noon, ""},
		"nothing":                        {"", noon, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := access.RedeemSession(t.Context(), sessions, c.text, c.at)
			if got.ID != c.id || (err == nil) != (c.id != "") || err != nil && !registry.HasCode(err, registry.CodeUnauthenticated) {
				t.Errorf("got the session %q and error %v, want %q", got.ID, err, c.id)
			}
		})
	}
}

func TestMalformedSessionsAreNotMinted(t *testing.T) {
	t.Parallel()
	if s, text, err := access.MintSession(storage.Session{Owner: "token a", Token: "a", Created: noon, Expires: noon}); err == nil || text != "" || s.ID != "" {
		t.Errorf("a session that has expired: %+v, %q, error %v", s, text, err)
	}
}

// unreachable are sessions in a database that does not answer.
type unreachable struct{ storage.Sessions }

var errUnreachable = errors.New("the database does not answer")

func (unreachable) FindSession(context.Context, string) (storage.Session, error) {
	return storage.Session{}, errUnreachable
}

// Nobody is signed out because the database does not answer.
func TestSessionsThatCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	_, text := session(t, mem.New())
	if _, err := access.RedeemSession(t.Context(), unreachable{}, text, noon); !errors.Is(err, errUnreachable) || registry.HasCode(err, registry.CodeUnauthenticated) {
		t.Errorf("error %v, want that of the database", err)
	}
}

// What cannot be the text of a session is refused without a look into the database.
func TestMalformedSessionsAreNotLookedUp(t *testing.T) {
	t.Parallel()
	_, text := session(t, mem.New())
	for name, text := range map[string]string{"nothing": "", "no secret": "aaaaaaaaaaaaaaaa", "an ID that is none": "x'--." + text, "a long text": text + strings.Repeat("a", 1<<10)} {
		if _, err := access.RedeemSession(t.Context(), unreachable{}, text, noon); !registry.HasCode(err, registry.CodeUnauthenticated) {
			t.Errorf("%s: error %v, want CodeUnauthenticated", name, err)
		}
	}
}
