package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const pluginSocket = "gcluster-simulated-gpu.sock"

// devices is the device plugin of one registration.
type devices struct {
	plugin.UnimplementedDevicePluginServer
	count   int
	stopped chan struct{}
}

func (d *devices) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (d *devices) ListAndWatch(_ *plugin.Empty, stream plugin.DevicePlugin_ListAndWatchServer) error {
	var all []*plugin.Device
	for i := range d.count {
		all = append(all, &plugin.Device{ID: fmt.Sprintf("GPU-simulated-%d", i), Health: plugin.Healthy})
	}
	if err := stream.Send(&plugin.ListAndWatchResponse{Devices: all}); err != nil {
		return err
	}
	select {
	case <-d.stopped:
	case <-stream.Context().Done():
	}
	return nil
}

func (d *devices) Allocate(_ context.Context, asked *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	answer := &plugin.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		ids := strings.Join(container.DevicesIds, ",")
		log.Printf("simulated: allocated %s", ids)
		answer.ContainerResponses = append(answer.ContainerResponses, &plugin.ContainerAllocateResponse{
			Envs:        map[string]string{"NVIDIA_VISIBLE_DEVICES": ids, "GCLUSTER_SIMULATED_GPUS": ids},
			Annotations: map[string]string{"gcluster.local/simulated-gpus": ids},
		})
	}
	return answer, nil
}

// offer offers the devices until the kubelet was restarted or took the socket away.
func offer(resource string, count int) error {
	socket := filepath.Join(plugin.DevicePluginPath, pluginSocket)
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	offered := &devices{count: count, stopped: make(chan struct{})}
	server := grpc.NewServer()
	plugin.RegisterDevicePluginServer(server, offered)
	go server.Serve(listener)
	defer server.Stop()
	defer close(offered.stopped)
	before, err := os.Stat(plugin.KubeletSocket)
	if err != nil {
		return err
	}
	if err := register(resource); err != nil {
		return err
	}
	log.Printf("simulated: registered %d of %s; no such device exists", count, resource)
	for {
		time.Sleep(time.Second)
		now, err := os.Stat(plugin.KubeletSocket)
		if err != nil {
			continue
		}
		if _, err := os.Stat(socket); err != nil || !os.SameFile(before, now) {
			return nil
		}
	}
}

func register(resource string) error {
	connection, err := grpc.NewClient("unix://"+plugin.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	limited, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = plugin.NewRegistrationClient(connection).Register(limited, &plugin.RegisterRequest{
		Version: plugin.Version, Endpoint: pluginSocket, ResourceName: resource,
	})
	return err
}

// simulatedGPU is a device plugin that offers GPUs that do not exist, and says so wherever it can.
//
// Pods take the real way to them: extended resource, scheduler, Allocate. What they get is a name.
func simulatedGPU() {
	flags := flag.NewFlagSet("simulated-gpu", flag.ExitOnError)
	count := flags.Int("count", 0, "how many GPUs the node claims to have")
	resource := flags.String("resource", "nvidia.com/gpu", "extended resource they are offered as")
	flags.Parse(os.Args[1:])
	if *count < 1 {
		log.Fatal("simulated: -count must be at least 1")
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-ended; os.Exit(0) }()
	for {
		if err := offer(*resource, *count); err != nil {
			log.Printf("simulated: %v; again in 2 s", err)
			time.Sleep(2 * time.Second)
		}
	}
}
