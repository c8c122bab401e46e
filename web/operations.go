package web

import (
	"net/http"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

// operationsView is the page of what administrators look after.
type operationsView struct {
	Storage, Collection, Integrity, Queues []fact
	Largest                                []fact
	Damaged                                []damage
	DamagedCount                           int
	Moves                                  []pendingMove
	Replicas                               []replica
	Keys                                   []key
	Webhooks                               []hook
}

// damage is content that cannot be served.
type damage struct {
	Digest   digest
	What     string // what is wrong with it
	Found    moment
	Releases string // that need it
}

// pendingMove is a promotion or rollback that began and has not ended.
type pendingMove struct {
	What, Model, URL string
	Begun            moment
}

// replica is a process that serves the catalog.
type replica struct {
	Name, Host, Version string
	State               state
	Configuration       state
	Started, Seen       moment
}

// key is a key or identity of the trust list.
type key struct {
	Name       string
	ID         digest
	State      state
	When       string // it counts
	Roles      string
	Signs      string
	Where      []string // environments
	Statements int
	Last       moment
	URL        string // of what it signed; empty: it signed nothing, or nothing says so
}

// hook is a webhook.
type hook struct {
	URL, What string
	State     state
	Delivered string
	Fault     string
}

func operationsPage(config *Config, r *http.Request) (answer, error) {
	ctx := r.Context()
	if config.Operations == nil {
		return answer{}, registry.Errorf(registry.CodeNotFound, "there is no page at this address")
	}
	if err := config.Authorize(ctx, storage.PermissionAdminister, "", ""); err != nil {
		return answer{}, err
	}
	o, err := config.Operations(ctx)
	if err != nil {
		return answer{}, err
	}
	view := operationsView{
		Storage: storageFacts(config.Now, o), Collection: collectionFacts(config.Now, o), Integrity: integrityFacts(config.Now, o), Queues: queueFacts(o), DamagedCount: o.DamagedCount,
	}
	if o.Content != nil {
		for _, use := range o.Content.Largest {
			view.Largest = append(view.Largest, fact{Name: registry.PlainText(use.Repository), Text: byteSize(use.Bytes)})
		}
	}
	for _, d := range o.Damaged {
		view.Damaged = append(view.Damaged, damageOf(config.Now, d))
	}
	for _, m := range o.Moves {
		what := "promotion to "
		if m.From == m.Environment {
			what = "rollback of "
		}
		view.Moves = append(view.Moves, pendingMove{what + registry.PlainText(m.Environment), registry.PlainText(m.Model), modelURL(m.Model), momentOf(config.Now, m.Begun)})
	}
	for _, one := range o.Replicas {
		view.Replicas = append(view.Replicas, replicaOf(config.Now, one, o.At))
	}
	for _, k := range o.Keys {
		view.Keys = append(view.Keys, keyOf(config.Now, k))
	}
	for _, w := range o.Webhooks {
		view.Webhooks = append(view.Webhooks, hookOf(config.Now, w))
	}
	return answer{template: "operations", title: "Operations", nav: "Operations", body: view, api: apiPath + "/operations"}, nil
}

func storageFacts(now storage.Clock, o api.Operations) []fact {
	facts := []fact{{Name: "Version", Text: registry.PlainText(o.Version)}}
	if o.Content == nil {
		return append(facts, fact{Name: "Content", Text: "is being counted: look again in a moment"})
	}
	c := *o.Content
	return append(facts,
		fact{Name: "Content", Text: byteSize(c.Bytes) + " in a " + registry.PlainText(c.Storage)},
		fact{Name: "Pieces", Text: registry.Count(c.Manifests, "manifest") + ", " + registry.Count(c.Blobs, "blob")},
		fact{Name: "Repositories", Text: number(int64(c.Repositories))},
		fact{Name: "Counted", Text: momentOf(now, c.At).Ago})
}

func collectionFacts(now storage.Clock, o api.Operations) []fact {
	every := "never"
	for _, r := range o.Replicas {
		if r.CollectEvery > 0 && !r.Stopped {
			every = "every " + shortDuration(r.CollectEvery)
		}
	}
	facts := []fact{{Name: "Runs", Text: every}}
	if c := o.Collection; c == nil {
		facts = append(facts, fact{Name: "Last", Text: "not yet"})
	} else {
		result := "succeeded"
		if c.Failed {
			result = "failed: the log of the service has the reason"
		}
		facts = append(facts,
			fact{Name: "Last", Text: momentOf(now, c.Ended).Ago + ", " + result},
			fact{Name: "Deleted", Text: registry.Count(c.Manifests, "manifest") + ", " + registry.Count(c.Blobs, "blob") + ", " + byteSize(c.Bytes)})
		for _, skipped := range c.Skipped {
			facts = append(facts, fact{Name: "Left alone", Text: registry.PlainText(skipped)})
		}
	}
	if o.Content != nil {
		facts = append(facts, fact{Name: "Marked", Text: registry.Count(o.Content.Marked, "record") + " that nothing needs"})
	}
	return facts
}

func integrityFacts(now storage.Clock, o api.Operations) []fact {
	every := "never"
	for _, r := range o.Replicas {
		if r.ScrubEvery > 0 && !r.Stopped {
			every = shortDuration(r.ScrubEvery) + " after the last time"
		}
	}
	facts := []fact{{Name: "Reads all again", Text: every}}
	switch {
	case !o.Scrub.Started.IsZero():
		facts = append(facts, fact{Name: "Now", Text: registry.Count(o.Scrub.Checked, "piece") + " read, " + byteSize(o.Scrub.Read) + ", since " + momentOf(now, o.Scrub.Started).Ago})
	case o.Scrub.Finished.IsZero():
		facts = append(facts, fact{Name: "Last", Text: "not yet"})
	}
	if !o.Scrub.Finished.IsZero() {
		facts = append(facts, fact{Name: "Last", Text: momentOf(now, o.Scrub.Finished).Ago})
	}
	return append(facts, fact{Name: "Damaged", Text: registry.Count(o.DamagedCount, "piece")})
}

func queueFacts(o api.Operations) []fact {
	waiting := 0
	for _, w := range o.Webhooks {
		if w.Waiting > 0 {
			waiting++
		}
	}
	return []fact{
		{Name: "Moves", Text: registry.Count(len(o.Moves), "promotion or rollback", "promotions or rollbacks")},
		{Name: "Uploads", Text: registry.Count(o.Uploads, "blob")},
		{Name: "Deliveries", Text: registry.Count(waiting, "webhook") + " behind"},
	}
}

func damageOf(now storage.Clock, d storage.Damage) damage {
	var names []string
	for _, r := range d.Releases {
		name := r.Environment + "/" + r.Model
		if len(r.Tags) > 0 {
			name += ":" + r.Tags[0]
		}
		names = append(names, name)
	}
	return damage{digestOf(d.Digest), registry.PlainText(string(d.Kind) + ": " + d.Detail), momentOf(now, d.Found), registry.PlainText(strings.Join(names, ", "))}
}

func replicaOf(now storage.Clock, r storage.Replica, at time.Time) replica {
	view := replica{
		Name: registry.PlainText(r.Name), Host: registry.PlainText(r.Host), Version: registry.PlainText(r.Version), State: stateOf(classGood, "serves"),
		Configuration: stateOf(classWait, registry.PlainText(string(r.Configuration))), Started: momentOf(now, r.Started), Seen: momentOf(now, r.Seen),
	}
	switch {
	case r.Stopped:
		view.State = stateOf(classPlain, "stopped")
	case r.Lost(at):
		view.State = stateOf(classBad, "lost")
	}
	switch r.Configuration {
	case history.ConfigurationAgreed:
		view.Configuration = stateOf(classGood, string(r.Configuration))
	case history.ConfigurationDiffers:
		view.Configuration = stateOf(classBad, string(r.Configuration))
	}
	return view
}

func keyOf(now storage.Clock, k api.KeyUse) key {
	var roles, signs []string
	for _, role := range k.Roles {
		roles = append(roles, string(role))
	}
	for _, predicate := range k.MaySign {
		signs = append(signs, evidenceName(predicate))
	}
	view := key{
		Name: registry.PlainText(k.Name), State: keyState(k.State), Roles: registry.PlainText(strings.Join(roles, ", ")), Signs: registry.PlainText(strings.Join(signs, ", ")),
		Where: plain(k.Environments), When: registry.PlainText(k.Window.String()), Statements: k.Statements, Last: momentOf(now, k.Last),
	}
	if k.State == evidence.KeyRetired {
		view.When = strings.TrimSpace("retired " + momentOf(now, k.RetiredAt).Ago + " " + view.When)
	}
	if len(k.NodeTypes) > 0 {
		view.When = strings.TrimSpace(view.When + " on " + registry.PlainText(strings.Join(k.NodeTypes, ", ")))
	}
	if k.Signer != "" {
		view.ID = digest{k.Signer[:min(len(k.Signer), shortDigest)], k.Signer}
		if k.Statements > 0 {
			view.URL = withQuery("/history", "signer", k.Signer)
		}
	}
	return view
}

func hookOf(now storage.Clock, w api.WebhookUse) hook {
	what := []string{"all events"}
	if len(w.Kinds) > 0 {
		what = nil
		for _, kind := range w.Kinds {
			what = append(what, string(kind))
		}
	}
	text := strings.Join(what, ", ")
	if w.Model != "" {
		text += " of " + w.Model
	}
	if w.Environment != "" {
		text += " in " + w.Environment
	}
	view := hook{
		URL: registry.PlainText(w.URL), What: registry.PlainText(text), Fault: registry.PlainText(w.LastError), State: stateOf(classGood, "delivered"),
		Delivered: "up to event " + number(w.Delivered),
	}
	if w.Waiting > 0 {
		view.Delivered += ", " + registry.Count(w.Waiting, "event") + " after it"
	}
	switch {
	case w.Suspended:
		view.State = stateOf(classBad, "stopped")
	case w.Attempts > 0:
		view.State = stateOf(classWait, registry.Count(w.Attempts, "failed attempt"))
		view.Delivered += ", next attempt " + momentOf(now, w.NextAttempt).Ago
	case w.Waiting > 0:
		view.State = stateOf(classWait, "behind")
	}
	return view
}
