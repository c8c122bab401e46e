// Package page has the parts that all pages share: their configuration and addresses, and texts for times, digests and states. It
// reads nothing itself.
package page
