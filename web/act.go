package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/web/page"
	"mlpromote.dev/mlpromote/web/releases"
)

// Limits on such a form.
const (
	maxForm   = 16 << 10 // bytes of the request
	maxReason = 500      // bytes
)

// form is what a person decides, and what they saw when they did.
type form struct {
	Action      string
	Environment string
	Model       string
	Release     registry.Digest // that the decision is about
	Replaces    registry.Digest // the head of the environment that they saw; empty: there was none
	Version     string          // to go back to
	Hold        string          // the reason of the hold that they saw
	Reason      string
}

// formFields are the fields of a form in a query or in the body of a request.
var formFields = []string{"action", "release", "replaces", "version", "hold", "reason"}

// values are the fields of a form that have a value.
func (f form) values() url.Values {
	all := url.Values{}
	for i, value := range []string{f.Action, string(f.Release), string(f.Replaces), f.Version, f.Hold, f.Reason} {
		if value != "" {
			all.Set(formFields[i], value)
		}
	}
	return all
}

// url is the address of the form.
func (f form) url() string {
	return "/environments/" + page.PathOf(f.Environment) + page.ActPath + page.PathOf(f.Model)
}

// link is the address at which the form is shown as it is filled in.
func (f form) link() string { return f.url() + "?" + f.values().Encode() }

// readForm reads the form that a request names, of its query or its body.
func readForm(r *http.Request, value func(string) string) (form, error) {
	f := form{
		Action: value("action"), Environment: r.PathValue("environment"), Model: r.PathValue("model"), Release: registry.Digest(value("release")),
		Replaces: registry.Digest(value("replaces")), Version: value("version"), Hold: value("hold"), Reason: strings.TrimSpace(value("reason")),
	}
	a, ok := actions()[f.Action]
	if !ok {
		return f, registry.Errorf(registry.CodeNotFound, "there is no form with which to %.40q", f.Action)
	}
	if a.release && f.Release == "" {
		return f, registry.Errorf(registry.CodeInvalid,
			"the form names no release: want its digest, so that the change is about the release that you saw")
	}
	for _, d := range []registry.Digest{f.Release, f.Replaces} {
		if d != "" && d.Validate() != nil {
			return f, registry.Errorf(registry.CodeInvalid, "the form names %.80q: want a digest", d)
		}
	}
	if len(f.Version) > page.MaxValue {
		return f, registry.Errorf(registry.CodeInvalid, "the form names a version of %d bytes: want at most %d", len(f.Version), page.MaxValue)
	}
	return f, nil
}

// postedForm reads the form in the body of a request. Errors: CodeInvalid.
func postedForm(r *http.Request) (form, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return form{}, registry.Errorf(registry.CodeInvalid, "the form cannot be read: want at most %d bytes", maxForm)
	}
	return readForm(r, r.PostForm.Get)
}

// actView is the page with the form: what will be done, what follows from it, and why it was not done.
type actView struct {
	Title    string
	Model    string
	ModelURL string

	Environment string

	URL     string
	Hidden  []field
	Reason  string
	Asks    bool           // it takes a reason
	May     bool           // which may be empty
	Now     cell           // what the environment has
	Release *releases.Side // that the decision is about; nil: it is about the head
	Follows []string
	Nodes   []nodeChange
	Button  string
	Denied  string // why the reader may not; empty: they may
	Fault   string // why it was not done
	Hints   []string
	Max     int // bytes of the reason
}

// field is a value that a form sends along.
type field struct{ Name, Value string }

// nodeChange is the engine that a node type gets before and after.
type nodeChange struct{ Node, From, To string }

// actPage shows a form. It changes nothing.
func actPage(config *page.Config, r *http.Request) (page.Answer, error) {
	f, err := readForm(r, r.URL.Query().Get)
	if err != nil {
		return page.Answer{}, err
	}
	return formPage(r.Context(), config, f)
}

// submit does what a form says, and shows the model. If it is refused, the form is shown again with what was
// typed, and with what is there now.
func submit(config *page.Config, r *http.Request) (page.Answer, error) {
	f, err := postedForm(r)
	if err != nil {
		return page.Answer{}, err
	}
	a := actions()[f.Action]
	if a.asks && !a.may && f.Reason == "" || len(f.Reason) > maxReason {
		err = registry.Errorf(registry.CodeInvalid, "a reason of %d bytes: want 1 to %d; it stays in the history", len(f.Reason), maxReason)
	} else {
		err = a.do(r.Context(), config, f)
	}
	if err == nil {
		return page.Answer{Location: page.WithQuery(page.ModelURL(f.Model), "environment", f.Environment)}, nil
	}
	text, hints := page.Explain(config.Logger, r, err)
	seen := f.Replaces
	shown, pageErr := formPage(r.Context(), config, f)
	if pageErr != nil {
		return page.Answer{}, pageErr
	}
	view := shown.Body.(actView)
	view.Fault, view.Hints = text, hints
	if now := registry.Digest(view.Now.Digest.Full); a.replaces && now != seen {
		f.Replaces = now // a second time is a decision about what is shown now
		view.Hidden = hidden(f)
	}
	shown.Body, shown.Status = view, registry.CodeOf(err).HTTPStatus()
	return shown, nil
}

// formPage is a form with what follows from it.
func formPage(ctx context.Context, config *page.Config, f form) (page.Answer, error) {
	environments, err := config.Registry.Environments(ctx)
	if err != nil {
		return page.Answer{}, err
	}
	e, err := environments.Find(f.Environment)
	if err != nil {
		return page.Answer{}, err
	}
	head, err := readHead(ctx, config.Registry, f.Environment, f.Model)
	if err != nil {
		return page.Answer{}, err
	}
	a := actions()[f.Action]
	f.Hold = ""
	if a.holds {
		f.Hold = head.Hold
	}
	view := actView{
		Title: a.title(f), Environment: registry.PlainText(f.Environment), Model: f.Model, ModelURL: page.ModelURL(f.Model), URL: f.url(),
		Reason: f.Reason, Asks: a.asks, May: a.may, Button: a.button, Max: maxReason,
		Denied: a.denied(ctx, f),
	}
	if view.Now, err = readCell(ctx, config, e, head); err != nil {
		return page.Answer{}, err
	}
	if f.Release != "" {
		// The address of a form may come from anybody, so the page says in full which release it is about.
		_, _, err := releases.FindPlace(ctx, config.Registry, "", func(environment string) error {
			r, err := config.Registry.Release(ctx, environment, f.Model, string(f.Release))
			if err == nil {
				view.Release = &releases.Side{Version: r.Tag(), URL: page.ReleaseURL(f.Model, r.Digest, environment), Environment: environment, Digest: page.DigestOf(r.Digest)}
			}
			return err
		})
		if err != nil {
			return page.Answer{}, err
		}
	}
	if view.Denied == "" {
		if view.Follows, view.Nodes, err = a.follows(ctx, config, &f); err != nil {
			switch registry.CodeOf(err) {
			case registry.CodeInternal, registry.CodeUnavailable:
				return page.Answer{}, err
			}
			text, _ := registry.TextForClients(err)
			view.Denied = "It is refused as things are: " + registry.PlainText(text)
		}
	}
	view.Hidden = hidden(f)
	return page.Answer{Template: "act", Title: view.Title, Nav: "Models", Body: view, API: page.ModelAPI(f.Model, "release", "environment", f.Environment)}, nil
}

// hidden are the fields that a person does not fill in.
func hidden(f form) []field {
	var all []field
	for _, name := range formFields {
		if value := f.values().Get(name); value != "" && name != "reason" {
			all = append(all, field{name, value})
		}
	}
	return all
}
