// Package follow follows the trust bundles of a registry: it checks each one against the one before, and remembers
// the newest in a folder.
package follow
