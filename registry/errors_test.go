package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
)

// exitCodes is the documented table, written down a second time.
var exitCodes = map[registry.Code]int{
	registry.CodeInternal: 1, registry.CodeFull: 1, registry.CodeInvalid: 2, registry.CodeLimit: 3, registry.CodePolicy: 4,
	registry.CodeTrust: 5, registry.CodeDigest: 5, registry.CodeUnsafe: 5,
	registry.CodeNoEngine: 6, registry.CodeWrongNode: 6,
	registry.CodeForbidden: 7, registry.CodeUnauthenticated: 7, registry.CodeNotFound: 8, registry.CodeUnavailable: 9, registry.CodeConflict: 9,
}

// exitPrecedence is the order in which exit codes win.
var exitPrecedence = []int{2, 5, 4, 3, 6, 7, 8, 1, 9}

func codes() []registry.Code {
	var all []registry.Code
	for code := range exitCodes {
		all = append(all, code)
	}
	slices.Sort(all)
	return all
}

func TestErrorMessageSaysEachThingOnce(t *testing.T) {
	t.Parallel()
	inner := registry.Errorf(registry.CodeDigest, "blob x: %w", fs.ErrNotExist)
	for want, err := range map[string]error{
		"plain 7":                                   registry.Errorf(registry.CodeInvalid, "plain %d", 7),
		"blob x: file does not exist":               inner,
		"rehash: blob x: file does not exist":       registry.Errorf(registry.CodePolicy, "rehash: %w", inner),
		"twice: file does not exist, file is known": registry.Errorf(registry.CodePolicy, "twice: %w, %w", fs.ErrNotExist, errors.New("file is known")),
		"message: cause":                            &registry.Error{Code: registry.CodePolicy, Message: "message", Err: errors.New("cause")},
		"cause":                                     registry.WithHint(errors.New("cause"), "do this"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("got message %q, want %q", got, want)
		}
	}
}

// Damage of one release is named and passed over; what ails the registry or the caller ends a list.
func TestIsUnreadable(t *testing.T) {
	t.Parallel()
	damage := []registry.Code{
		registry.CodeTrust, registry.CodeDigest, registry.CodeUnsafe, registry.CodeInvalid, registry.CodeNotFound, registry.CodeInternal}
	for _, code := range codes() {
		if got, want := registry.IsUnreadable(registry.Errorf(code, "of a release")), slices.Contains(damage, code); got != want {
			t.Errorf("%s: got %v, want %v", code, got, want)
		}
	}
	if registry.IsUnreadable(nil) {
		t.Error("nil: got true, want false")
	}
}

func TestErrorKeepsItsCauses(t *testing.T) {
	t.Parallel()
	err := registry.Errorf(registry.CodePolicy, "outer: %w", registry.Errorf(registry.CodeDigest, "inner: %w and %w", fs.ErrNotExist, context.Canceled))
	for _, target := range []error{fs.ErrNotExist, context.Canceled} {
		if !errors.Is(err, target) {
			t.Errorf("%v is lost in %v", target, err)
		}
	}
	if registry.HasCode(err, registry.CodeTrust) || !registry.HasCode(err, registry.CodeDigest) || !registry.HasCode(err, registry.CodePolicy) {
		t.Errorf("HasCode sees other codes than policy and digest in %v", err)
	}
	var none error
	for _, empty := range []error{registry.Errorf(registry.CodePolicy, "nothing: %w", none),
		registry.Errorf(registry.CodePolicy, "nothing: %w %w", none, none)} {
		if errors.Unwrap(empty) != nil || registry.ExitCode(empty) != 4 {
			t.Errorf("wrapping nil gives %#v", empty)
		}
	}
}

// wrapped puts an error behind a few layers of the kinds that the program uses.
func wrapped(t *rapid.T, err error) error {
	for range rapid.IntRange(0, 4).Draw(t, "layers") {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			err = fmt.Errorf("layer: %w", err)
		case 1:
			err = errors.Join(errors.New("beside"), err)
		case 2:
			err = registry.WithHint(err, "hint")
		case 3:
			err = registry.Errorf(registry.CodeOf(err), "layer: %w", err)
		}
	}
	return err
}

func TestExitCodePrecedence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		drawn := rapid.SliceOfN(rapid.SampledFrom(codes()), 1, 5).Draw(t, "codes")
		var joined []error
		best := len(exitPrecedence)
		for _, code := range drawn {
			joined = append(joined, wrapped(t, registry.Errorf(code, "%s", code)))
			best = min(best, slices.Index(exitPrecedence, exitCodes[code]))
		}
		err := errors.Join(joined...)
		if got := registry.ExitCode(err); got != exitPrecedence[best] {
			t.Fatalf("exit code of %v is %d, want %d", drawn, got, exitPrecedence[best])
		}
		for _, code := range drawn {
			if !registry.HasCode(err, code) {
				t.Fatalf("code %s is lost in %v", code, err)
			}
		}
	})
}

func TestEveryCodeHasExitCodeAndStatus(t *testing.T) {
	t.Parallel()
	for code, exit := range exitCodes {
		if got := registry.ExitCode(registry.Errorf(code, "x")); got != exit {
			t.Errorf("exit code of %s is %d, want %d", code, got, exit)
		}
		if status := code.HTTPStatus(); status < 400 || status > 599 {
			t.Errorf("HTTP status of %s is %d", code, status)
		}
	}
	if got := registry.Code("unheard of").HTTPStatus(); got != 500 {
		t.Errorf("an unknown code has the status %d, want 500", got)
	}
	for err, want := range map[error]int{nil: 0, errors.New("x"): 1, registry.Errorf("unheard of", "x"): 1} {
		if got := registry.ExitCode(err); got != want {
			t.Errorf("exit code of %v is %d, want %d", err, got, want)
		}
	}
}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	digest := registry.Errorf(registry.CodeDigest, "x")
	for _, c := range []struct {
		err  error
		want registry.Code
	}{
		{nil, registry.CodeInternal},
		{errors.New("x"), registry.CodeInternal},
		{context.Canceled, registry.CodeInternal},
		{fmt.Errorf("call: %w", context.DeadlineExceeded), registry.CodeUnavailable},
		{registry.Errorf(registry.CodePolicy, "late: %w", context.DeadlineExceeded), registry.CodePolicy},
		{fmt.Errorf("a: %w", digest), registry.CodeDigest},
		{registry.Errorf(registry.CodeTrust, "a: %w", digest), registry.CodeTrust},
		{registry.WithHint(digest, "h"), registry.CodeDigest},
		{errors.Join(errors.New("x"), digest, registry.Errorf(registry.CodePolicy, "y")), registry.CodeDigest},
	} {
		if got := registry.CodeOf(c.err); got != c.want {
			t.Errorf("code of %v is %s, want %s", c.err, got, c.want)
		}
	}
}

// A refusal beside which something failed is no plain refusal.
func TestOnlyCode(t *testing.T) {
	t.Parallel()
	refused := registry.Errorf(registry.CodePolicy, "no approval")
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                   {nil, false},
		"a refusal":                  {refused, true},
		"a refusal with a hint":      {registry.WithHint(refused, "approve it"), true},
		"a refusal in a context":     {fmt.Errorf("prod: %w", refused), true},
		"two refusals":               {errors.Join(refused, registry.WithHint(refused, "h")), true},
		"a refusal and a failure":    {errors.Join(refused, registry.Errorf(registry.CodeUnavailable, "no answer")), false},
		"a refusal and a bare error": {errors.Join(refused, context.DeadlineExceeded), false},
		"a refusal by a failure":     {registry.Errorf(registry.CodePolicy, "late: %w", context.DeadlineExceeded), false},
		"a failure by a refusal":     {registry.Errorf(registry.CodeTrust, "a: %w", refused), false},
		"a bare error":               {errors.New("x"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := registry.OnlyCode(c.err, registry.CodePolicy); got != c.want {
				t.Errorf("got %v for %v, want %v", got, c.err, c.want)
			}
		})
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	if err := registry.WithHint(nil, "do this"); err != nil {
		t.Errorf("a hint makes an error of nil: %v", err)
	}
	held := registry.WithHint(registry.Errorf(registry.CodePolicy, "held"), "release %s", "it")
	damaged := registry.WithHint(registry.Errorf(registry.CodeDigest, "damaged"), "restore it")
	err := registry.Errorf(registry.CodeConflict, "both: %w", errors.Join(held, damaged))
	if got := strings.Join(registry.Hints(err), "|"); got != "release it|restore it" {
		t.Errorf("hints are %q", got)
	}
	if registry.ExitCode(err) != 5 || strings.Contains(err.Error(), "restore it") {
		t.Errorf("the hint changed exit code %d or message %q", registry.ExitCode(err), err)
	}
}
