// Package conformance names what is compiled from Kubernetes' own tests, so that go.sum holds all of it.
package conformance

import (
	_ "k8s.io/kubernetes/test/e2e"
)
