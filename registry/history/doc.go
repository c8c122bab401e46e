// Package history has the events of a registry, the heads that they move, and the facts that a decision rests on, so
// that a head moves only while they hold.
package history
