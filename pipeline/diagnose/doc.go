// Package diagnose finds out where an engine and its reference model part ways: layer by layer, for one case, and by the time of its
// operators. It attaches nothing.
package diagnose
