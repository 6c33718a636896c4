package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// routeProtocol marks the routes that are ours (rtm_protocol; 4 and up are free for daemons).
const routeProtocol = 98

const masqueradeTable = "gcluster_routed"

// node keeps what one node's pod network stands on.
type node struct {
	name, podNetworks, confFolder string
	mtu                           int
}

// routedCNI gives the pods of each node a network without an overlay, where all nodes are on one
// segment: the plugins ptp and host-local over the node's own pod CIDR, portmap for pods that ask for
// a port of their node, a route to each other node's, and one masquerade rule for what leaves the
// pods' networks.
//
// What is missing is put back every few seconds: a container that was restarted has lost it all.
func routedCNI() {
	flags := flag.NewFlagSet("routed-cni", flag.ExitOnError)
	own := node{}
	flags.StringVar(&own.name, "node", os.Getenv("NODE_NAME"), "name of this node")
	flags.StringVar(&own.podNetworks, "pod-cidr", "", "network of all pods, which is not masqueraded")
	flags.StringVar(&own.confFolder, "conf", "/etc/cni/net.d", "folder of the CNI configuration")
	flags.IntVar(&own.mtu, "mtu", 1500, "of the pods' interfaces, in bytes")
	flags.Parse(os.Args[1:])
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Nodes()
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { tell() }, DeleteFunc: func(any) { tell() },
		UpdateFunc: func(before, after any) {
			if before.(*corev1.Node).Spec.PodCIDR != after.(*corev1.Node).Spec.PodCIDR ||
				address(before.(*corev1.Node)) != address(after.(*corev1.Node)) {
				tell()
			}
		},
	})
	factory.Start(make(chan struct{}))
	factory.WaitForCacheSync(make(chan struct{}))
	for tick := time.Tick(5 * time.Second); ; {
		nodes, err := informer.Lister().List(labels.Everything())
		if err == nil {
			err = own.settle(nodes)
		}
		if err != nil {
			log.Print(err)
		}
		select {
		case <-changed:
		case <-tick:
		}
	}
}

// settle has this node's network be as the list of nodes says.
func (own node) settle(nodes []*corev1.Node) error {
	routes := map[string]net.IP{}
	podCIDR := ""
	for _, other := range nodes {
		switch {
		case other.Spec.PodCIDR == "":
		case other.Name == own.name:
			podCIDR = other.Spec.PodCIDR
		case address(other) != "":
			routes[other.Spec.PodCIDR] = net.ParseIP(address(other))
		}
	}
	if podCIDR == "" {
		return fmt.Errorf("node %s has no pod CIDR yet", own.name)
	}
	if err := settleRoutes(routes); err != nil {
		return err
	}
	if err := own.masquerade(); err != nil {
		return err
	}
	// Last: the kubelet calls the node's network ready as soon as this file is there.
	return own.writeConfig(podCIDR)
}

// settleRoutes has exactly these routes of ours be there.
func settleRoutes(wanted map[string]net.IP) error {
	filter := &netlink.Route{Protocol: routeProtocol}
	there, err := netlink.RouteListFiltered(netlink.FAMILY_V4, filter, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return err
	}
	for _, route := range there {
		gateway, known := wanted[route.Dst.String()]
		if known && gateway.Equal(route.Gw) {
			delete(wanted, route.Dst.String())
		} else if !known {
			if err := netlink.RouteDel(&route); err != nil {
				return fmt.Errorf("route to %s was not removed: %w", route.Dst, err)
			}
		}
	}
	for destination, gateway := range wanted {
		_, network, err := net.ParseCIDR(destination)
		if err != nil {
			return err
		}
		route := &netlink.Route{Dst: network, Gw: gateway, Protocol: routeProtocol}
		if err := netlink.RouteReplace(route); err != nil {
			return fmt.Errorf("no route to %s by %s: %w", destination, gateway, err)
		}
		log.Printf("route to %s by %s", destination, gateway)
	}
	return nil
}

// masquerade has the one rule be there that gives packets from pods to elsewhere the node's address.
func (own node) masquerade() error {
	if exec.Command("nft", "list", "table", "ip", masqueradeTable).Run() == nil {
		return nil
	}
	rules := exec.Command("nft", "-f", "-")
	rules.Stdin = bytes.NewBufferString(fmt.Sprintf(
		"table ip %s { chain postrouting { type nat hook postrouting priority srcnat + 10; "+
			"ip saddr %s ip daddr != %s masquerade; }; }\n", masqueradeTable, own.podNetworks, own.podNetworks))
	if said, err := rules.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, said)
	}
	return nil
}

// writeConfig replaces the CNI configuration where it is another one.
func (own node) writeConfig(podCIDR string) error {
	type object = map[string]any
	content, err := json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       "gcluster",
		"plugins": []object{{
			"type": "ptp", "ipMasq": false, "mtu": own.mtu,
			"ipam": object{
				"type": "host-local", "dataDir": "/run/cni-ipam-state",
				"ranges": [][]object{{{"subnet": podCIDR}}},
				"routes": []object{{"dst": "0.0.0.0/0"}},
			},
		}, {
			"type": "portmap", "capabilities": object{"portMappings": true}, "snat": true,
		}},
	}, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(own.confFolder, "10-gcluster.conflist")
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, content) {
		return nil
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, content, 0o644); err != nil {
		return err
	}
	log.Printf("pods of this node are in %s", podCIDR)
	return os.Rename(fresh, path)
}

func address(of *corev1.Node) string {
	for _, given := range of.Status.Addresses {
		if given.Type == corev1.NodeInternalIP {
			return given.Address
		}
	}
	return ""
}
