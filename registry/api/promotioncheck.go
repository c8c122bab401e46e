package api

import (
	"context"
	"net/url"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/policy"
)

// PromotionCheck answers whether a release may be promoted to an environment now, for release managers that
// wait until it may. The zero PromotionCheck does not allow. It is no promise: [Writer.Promote] decides anew
// and reads all bytes.
type PromotionCheck struct {
	Allowed     bool            `json:"allowed"` // the first member, so that text tools find it
	Environment string          `json:"environment"`
	Model       string          `json:"model"`
	Version     string          `json:"version"` // tag
	Digest      registry.Digest `json:"digest"`  // of the release that was decided about
	// Unchanged is true if the environment has the release already.
	Unchanged bool       `json:"unchanged"`
	Reasons   []Obstacle `json:"reasons"` // why not; empty if allowed
}

// PromotionQuery asks about the promotion of a release to an environment. Version, Digest or both name the release, since a
// head moves between the answer and its use.
type PromotionQuery struct {
	Model       string          `path:"model"`
	Environment string          `query:"environment,required"`
	Version     string          `query:"version"`
	Digest      registry.Digest `query:"digest"`
}

// PromotionChecker answers whether a release may be promoted.
type PromotionChecker interface {
	// PromotionCheck decides about a promotion and changes nothing. A refusal is an answer, whose Allowed is false; with an
	// error nothing was decided. Errors: CodeInvalid for a query without an environment or a release; CodeNotFound for an unknown
	// environment or release; CodeConflict if version and digest name two releases.
	PromotionCheck(ctx context.Context, q PromotionQuery) (PromotionCheck, error)
}

// PromotionChecks is the PromotionChecker of a registry.
type PromotionChecks struct {
	Registry interface { // the part of [Interface] that finds a release
		Environments(ctx context.Context) (policy.Environments, error)
		Release(ctx context.Context, environment, model, tagOrDigest string) (artifact.Release, error)
	}
	Preview interface { // the part of [Previewer] that decides
		Preview(ctx context.Context, r PromoteRequest) (Promotion, error)
	}
	Pages string // address of the service's pages; empty: none
}

// PromotionCheck finds the release in the environment that the destination takes releases from, and decides.
func (c PromotionChecks) PromotionCheck(ctx context.Context, q PromotionQuery) (PromotionCheck, error) {
	environments, err := c.Registry.Environments(ctx)
	if err != nil {
		return PromotionCheck{}, err
	}
	if q.Environment == "" {
		return PromotionCheck{}, registry.Errorf(registry.CodeInvalid, "query: environment is missing: want the name of one")
	}
	from, _, err := environments.Edge("", q.Environment)
	if err != nil {
		return PromotionCheck{}, err
	}
	release, err := c.release(ctx, from.Name, q)
	if err != nil {
		return PromotionCheck{}, err
	}
	promotion, refused := c.Preview.Preview(ctx, PromoteRequest{Model: q.Model, Ref: string(release.Digest), From: from.Name, To: q.Environment})
	return CheckPromotion(release, from.Name, q.Environment, c.Pages, promotion, refused)
}

// release reads the release that a query names, in the environment that it would come from.
func (c PromotionChecks) release(ctx context.Context, from string, q PromotionQuery) (artifact.Release, error) {
	ref := q.Version
	switch {
	case q.Version == "" && q.Digest == "":
		return artifact.Release{}, registry.Errorf(registry.CodeInvalid, "query: the release is missing: want version=TAG or digest=DIGEST, since a head can move")
	case q.Version != "" && !registry.ValidTag(q.Version):
		return artifact.Release{}, registry.Errorf(registry.CodeInvalid, "query: version %.100q: want a tag such as 1.2.0", q.Version)
	case q.Digest != "" && q.Digest.Validate() != nil:
		return artifact.Release{}, registry.Errorf(registry.CodeInvalid, "query: digest %.100q: want sha256 and 64 hexadecimal digits", q.Digest)
	case q.Version == "":
		ref = string(q.Digest)
	}
	release, err := c.Registry.Release(ctx, from, q.Model, ref)
	if err == nil && q.Digest != "" && release.Digest != q.Digest {
		return artifact.Release{}, registry.Lastingf(registry.CodeConflict, "version %s of %s is %s in %s, not %s: ask about one of them",
			q.Version, q.Model, release.Digest, from, q.Digest)
	}
	return release, err
}

// Obstacle is one thing that is in the way of a promotion.
type Obstacle struct {
	Code registry.Code `json:"code"`
	// Requirement is empty for what is no requirement of the environment, such as a hold or a version
	// that names another release there.
	Requirement string `json:"requirement,omitempty"`
	Subject     string `json:"subject,omitempty"` // as [policy.Requirement] has it
	Message     string `json:"message"`           // one line
	Refused     bool   `json:"refused,omitempty"` // as [policy.Requirement] has it
	Command     string `json:"command,omitempty"` // that meets the requirement; empty where no single one does
	URL         string `json:"url,omitempty"`     // page of the subject; empty if the service is unnamed
}

// CheckPromotion says what a [Previewer] answered about the promotion of r out of an environment. service
// is the address of the service's pages; empty for none. Errors: refused itself unless it is only a refusal by
// policy, since then nothing was decided; CodeInternal if the answer is about another release or destination.
func CheckPromotion(r artifact.Release, from, to, service string, p Promotion, refused error) (PromotionCheck, error) {
	if refused != nil && !registry.OnlyCode(refused, registry.CodePolicy) {
		return PromotionCheck{}, refused
	}
	if (refused == nil || p.Release != "") && (p.Release != r.Digest || p.Environment != to || p.Model != r.Model) {
		return PromotionCheck{}, registry.Errorf(registry.CodeInternal, "asked about %s of %s in %s, and got a decision about %s of %s in %s",
			r.Digest, r.Model, to, p.Release, p.Model, p.Environment)
	}
	c := PromotionCheck{
		Allowed: refused == nil && p.Decision.Allowed(), Environment: to, Model: r.Model, Version: r.Tag(), Digest: r.Digest,
		Unchanged: p.Unchanged, Reasons: []Obstacle{},
	}
	if c.Allowed {
		return c, nil
	}
	page := ReleasePage(service, r.Model, r.Digest, from)
	if service == "" {
		page = ""
	}
	c.Reasons = append(unmetReasons(r, from, to, service, p.Decision), otherReasons(p.Decision, page, refused)...)
	if len(c.Reasons) == 0 {
		c.Reasons = []Obstacle{{Code: registry.CodePolicy, Message: "its policy has no requirements, so it allows no release", URL: page}}
	}
	return c, nil
}

// unmetReasons are the requirements that are unmet.
func unmetReasons(r artifact.Release, from, to, service string, d policy.Decision) []Obstacle {
	var reasons []Obstacle
	ref := registry.Repository(from, r.Model) + ":" + r.Tag()
	for _, req := range d.Unmet() {
		reason := Obstacle{
			Code: registry.CodePolicy, Requirement: req.Name, Subject: req.Subject, Message: oneLine(req.Detail), Refused: req.Objects(),
			Command: req.Command(ref, to),
		}
		if service != "" {
			reason.URL = subjectPage(r, from, service, req.Subject)
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

// otherReasons are refusals that are no requirements. Where requirements are unmet, the first of the joined
// errors says so, and is left out.
func otherReasons(d policy.Decision, page string, refused error) []Obstacle {
	all := parts(refused)
	if len(all) > 0 && len(d.Unmet()) > 0 {
		all = all[1:]
	}
	var reasons []Obstacle
	for _, err := range all {
		text, _ := registry.TextForClients(err)
		message := strings.Join(append([]string{text}, registry.Hints(err)...), "; ")
		reasons = append(reasons, Obstacle{Code: registry.CodeOf(err), Message: oneLine(message), URL: page})
	}
	return reasons
}

// parts are the errors that err joins, or err alone.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error }) // only what was joined last, not what is wrapped
	if !ok {
		return []error{err}
	}
	var all []error
	for _, inner := range joined.Unwrap() {
		all = append(all, parts(inner)...)
	}
	return all
}

// oneLine is text without newlines and control characters.
func oneLine(text string) string {
	return strings.Join(strings.Fields(registry.PlainText(strings.ReplaceAll(text, "\n", " "))), " ")
}

// subjectPage is the page of the subject of a requirement: that of an engine, or else of the release.
func subjectPage(r artifact.Release, from, service, subject string) string {
	for _, e := range r.Engines {
		if e.Label() == subject {
			return EnginePage(service, r.Model, e.Digest, from)
		}
	}
	return ReleasePage(service, r.Model, r.Digest, from)
}

// ReleasePage is the address of the page of a release at a service. An empty service gives the path alone, and
// an empty environment the page for the first one that has it.
func ReleasePage(service, model string, d registry.Digest, environment string) string {
	return page(service, model, "releases", d, environment)
}

// EnginePage is [ReleasePage] for an engine.
func EnginePage(service, model string, d registry.Digest, environment string) string {
	return page(service, model, "engines", d, environment)
}

func page(service, model, kind string, d registry.Digest, environment string) string {
	address := strings.TrimRight(service, "/") + "/models/"
	for _, part := range strings.Split(model, "/") {
		address += url.PathEscape(part) + "/"
	}
	address += "-/" + kind + "/" + string(d) // a component of a model's name begins with a letter or digit
	if environment != "" {
		address += "?environment=" + url.QueryEscape(environment)
	}
	return address
}
