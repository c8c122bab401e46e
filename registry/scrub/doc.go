// Package scrub reads all stored content at a low rate. It finds content that is missing or does
// not match its digest before a node needs it.
package scrub
