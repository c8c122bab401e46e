// Package web serves the pages of the registry service for people: the releases in each environment, who
// promoted them, and unmet requirements.
//
// Pages read only what the context's principal may read, because they ask a [api.Interface] that checks
// permissions, as [mlpromote.dev/mlpromote/registry/access.Guard] does. They hold no rules: statements about a
// release come from the registry's decisions, claims and events. Each page links the same facts as JSON.
//
// A page is made in two steps. A function reads from the registry and returns a view, which has texts,
// links and states ready to be shown; a template prints the view. Package releases has the pages of releases
// and engines, and package page the parts that all pages share. Pages work without JavaScript, load nothing
// from other hosts, and have neither inline scripts nor inline styles.
package web
