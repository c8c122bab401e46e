package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/rest"
)

// allCodes reads the codes that there are from their declaration.
func allCodes(t *testing.T) []registry.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []registry.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, registry.Code(text))
		return true
	})
	if len(codes) < 12 {
		t.Fatalf("found only the codes %v", codes)
	}
	return codes
}

// across sends an error to the other side.
func across(t *testing.T, err error) (rest.Problem, error) {
	t.Helper()
	sent, encodeErr := json.Marshal(rest.NewProblem(err))
	if encodeErr != nil {
		t.Fatal(encodeErr)
	}
	var received rest.Problem
	if err := json.Unmarshal(sent, &received); err != nil {
		t.Fatal(err)
	}
	return received, received.Err()
}

// What trying again does not help with ends a verb with the same exit code on both sides.
func TestExitCodesSurvive(t *testing.T) {
	t.Parallel()
	busy := registry.Errorf(registry.CodeUnavailable, "the database is away")
	for name, err := range map[string]error{
		"again":           busy,
		"lasting":         registry.Lastingf(registry.CodeUnavailable, "there is no key"),
		"wrapped":         registry.Errorf(registry.CodeUnavailable, "promote: %w", registry.Lastingf(registry.CodeUnavailable, "there is no key")),
		"told otherwise":  registry.ForClients(registry.Lastingf(registry.CodeUnavailable, "no /keys/promoter.key"), "the service cannot sign"),
		"taken":           registry.Lastingf(registry.CodeConflict, "there is one of that name"),
		"conflict":        registry.Errorf(registry.CodeConflict, "somebody else was first"),
		"joined":          errors.Join(busy, registry.Lastingf(registry.CodeUnavailable, "there is no key")),
		"policy":          registry.Errorf(registry.CodePolicy, "no"),
		"hinted":          registry.WithHint(registry.Lastingf(registry.CodeUnavailable, "there is no key"), "make one"),
		"lasting, policy": registry.Errorf(registry.CodePolicy, "no: %w", registry.Lastingf(registry.CodeUnavailable, "there is no key")),
	} {
		p, got := across(t, err)
		if want := registry.ExitCode(err); registry.ExitCode(got) != want || p.Lasting() != (want != registry.ExitAgain) {
			t.Errorf("%s: exit code %d and lasting %v, want %d", name, registry.ExitCode(got), p.Lasting(), want)
		}
	}
	// The service has no credential for another registry. Its caller is known.
	if p, got := across(t, registry.WithExit(busy, registry.ExitAuthentication)); registry.ExitCode(got) != registry.ExitFailed || !p.Lasting() {
		t.Errorf("a service without a credential: exit code %d and lasting %v, want %d and true", registry.ExitCode(got), p.Lasting(), registry.ExitFailed)
	}
	odd := rest.Problem{Code: registry.CodePolicy, Errors: []rest.Fault{{Code: registry.CodePolicy, Exit: -1}}}
	if got := registry.ExitCode(odd.Err()); got != registry.ExitPolicy {
		t.Errorf("exit code %d of a service that sends -1, want that of the code", got)
	}
}

func TestEveryCodeSurvives(t *testing.T) {
	t.Parallel()
	titles := make(map[string]registry.Code)
	for _, code := range allCodes(t) {
		err := registry.WithHint(registry.Errorf(code, "it is %s", "so"), "do %s", "this")
		p, got := across(t, err)
		if registry.CodeOf(got) != code || !registry.HasCode(got, code) || registry.ExitCode(got) != registry.ExitCode(err) {
			t.Errorf("%s arrives as %s with exit code %d", code, registry.CodeOf(got), registry.ExitCode(got))
		}
		if p.Code != code || p.Status != code.HTTPStatus() || !strings.HasSuffix(p.Type, "/"+string(code)) {
			t.Errorf("%s is the problem %+v", code, p)
		}
		if before, twice := titles[p.Title]; twice || p.Title == "" {
			t.Errorf("%s has the title %q, like %s", code, p.Title, before)
		}
		titles[p.Title] = code
		if code == registry.CodeInternal {
			continue // told apart below
		}
		if got.Error() != "it is so" || !slices.Equal(registry.Hints(got), []string{"do this"}) {
			t.Errorf("%s says %q with the hints %q", code, got, registry.Hints(got))
		}
	}
}

func TestInternalErrorsAreHidden(t *testing.T) {
	t.Parallel()
	secret := errors.New("open /srv/secret: permission denied")
	for name, err := range map[string]error{
		"plain":      secret,
		"wrapped":    fmt.Errorf("read: %w", secret),
		"coded":      registry.Errorf(registry.CodeInternal, "read: %w", secret),
		"with hint":  registry.WithHint(secret, "look into /srv/secret"),
		"over known": registry.Errorf(registry.CodeInternal, "%w: %w", secret, registry.Errorf(registry.CodeTrust, "of /srv/secret")),
		"no code":    &registry.Error{Message: "secret"},
		"empty list": none{},
	} {
		p := rest.NewProblem(err)
		text, encodeErr := json.Marshal(p)
		if encodeErr != nil || strings.Contains(string(text), "secret") ||
			p.Code != registry.CodeInternal || p.Status != 500 || !p.Hidden() || p.Detail == "" {
			t.Errorf("%s: %s, %+v", name, text, p)
		}
		if _, got := across(t, err); registry.ExitCode(got) != registry.ExitCode(err) {
			t.Errorf("%s: exit code %d, want %d", name, registry.ExitCode(got), registry.ExitCode(err))
		}
	}
	joined := errors.Join(secret, registry.Errorf(registry.CodePolicy, "no"))
	p := rest.NewProblem(joined)
	if p.Code != registry.CodePolicy || !p.Hidden() || strings.Contains(p.Errors[0].Detail, "secret") {
		t.Errorf("beside another: %+v", p)
	}
	if rest.NewProblem(registry.Errorf(registry.CodePolicy, "no")).Hidden() {
		t.Error("what is told is taken for hidden")
	}
}

// What is for the operator alone stays with him, hints too, however often it was wrapped.
func TestClientsAreToldOtherwise(t *testing.T) {
	t.Parallel()
	secret := registry.ForClients(
		registry.WithHint(registry.Errorf(registry.CodeUnavailable, "dial secret@10.0.0.1: %w", registry.Errorf(registry.CodeConflict, "secret")),
			"ask secret"),
		"models: the database does not serve now")
	for name, err := range map[string]error{
		"itself": secret, "wrapped": registry.Errorf(registry.CodeUnavailable, "resolve: %w", secret), "beside another": errors.Join(registry.Errorf(registry.CodeUnavailable, "x"), secret),
	} {
		p, got := across(t, err)
		text, encodeErr := json.Marshal(p)
		if encodeErr != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "the database does not serve now") {
			t.Errorf("%s: %s", name, text)
		}
		if !rest.NewProblem(err).Hidden() || registry.CodeOf(got) != registry.CodeUnavailable || !registry.HasCode(got, registry.CodeConflict) {
			t.Errorf("%s: arrives as %v, hidden %t", name, got, rest.NewProblem(err).Hidden())
		}
	}
	if registry.ForClients(nil, "x") != nil {
		t.Error("none became an error")
	}
}

// none is an error of many that has none.
type none struct{}

func (none) Error() string { return "secret" }

func (none) Unwrap() []error { return nil }

func TestDeadlineIsTold(t *testing.T) {
	t.Parallel()
	for _, err := range []error{context.DeadlineExceeded, fmt.Errorf("dial /srv/secret: %w", context.DeadlineExceeded)} {
		p, got := across(t, err)
		if p.Code != registry.CodeUnavailable || registry.CodeOf(got) != registry.CodeUnavailable || strings.Contains(got.Error(), "secret") {
			t.Errorf("%v arrives as %v (%s)", err, got, p.Code)
		}
	}
}

// Whatever two errors come together, in whatever way, the exit code is the same on both
// sides, and errors.Is finds both codes.
func TestJoinedErrorsKeepTheExitCode(t *testing.T) {
	t.Parallel()
	codes := allCodes(t)
	for _, a := range codes {
		for _, b := range codes {
			one, two := registry.Errorf(a, "one"), registry.Errorf(b, "two")
			for name, err := range map[string]error{
				"joined":  errors.Join(one, two),
				"nested":  errors.Join(one, errors.Join(registry.Errorf(registry.CodeUnavailable, "x"), two)),
				"wrapped": registry.Errorf(a, "one: %w", two),
				"both":    registry.Errorf(a, "one: %w", errors.Join(two, one)),
				"by fmt":  fmt.Errorf("some: %w", errors.Join(one, two)),
			} {
				p, got := across(t, err)
				if registry.ExitCode(got) != registry.ExitCode(err) || !registry.HasCode(got, a) || !registry.HasCode(got, b) {
					t.Errorf("%s of %s and %s arrives as %v: exit code %d, want %d", name, a, b, got, registry.ExitCode(got), registry.ExitCode(err))
				}
				if p.Status != p.Code.HTTPStatus() || p.Code == "" {
					t.Errorf("%s of %s and %s is the problem %+v", name, a, b, p)
				}
			}
		}
	}
	_, got := across(t, errors.Join(registry.Errorf(registry.CodePolicy, "one"),
		registry.Errorf(registry.CodeTrust, "two: %w", registry.Errorf(registry.CodeDigest, "three"))))
	if got.Error() != "one\ntwo: three" {
		t.Errorf("the message is %q", got)
	}
}

// Hints arrive in their order.
func TestHintsSurvive(t *testing.T) {
	t.Parallel()
	err := registry.WithHint(registry.WithHint(registry.Errorf(registry.CodePolicy, "no"), "inner"), "outer")
	if _, got := across(t, err); !slices.Equal(registry.Hints(got), registry.Hints(err)) || got.Error() != "no" {
		t.Errorf("got %q with the hints %q, want %q", got, registry.Hints(got), registry.Hints(err))
	}
}

// What another side sends is an error whatever it says.
func TestProblemsOfOthers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, `{"code":"what"}`, `{"code":"policy","detail":"no"}`, `{"code":"policy","errors":[{}]}`, `{"code":"policy","errors":[{"causes":["what",""],"hints":[""]}]}`,
	} {
		var p rest.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		if err := p.Err(); err == nil || registry.ExitCode(err) < 1 {
			t.Errorf("%s gives the error %v with exit code %d", text, err, registry.ExitCode(err))
		}
	}
}
