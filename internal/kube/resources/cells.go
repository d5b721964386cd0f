package resources

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

func podReady(pod *corev1.Pod) any {
	ready := 0
	for _, status := range pod.Status.ContainerStatuses {
		if status.Ready && status.State.Running != nil {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers))
}

func podRestarts(r *Row) any {
	restarts, last := 0, metav1.Time{}
	for _, status := range r.Object.(*corev1.Pod).Status.ContainerStatuses {
		restarts += int(status.RestartCount)
		if ended := status.LastTerminationState.Terminated; ended != nil && last.Before(&ended.FinishedAt) {
			last = ended.FinishedAt
		}
	}
	if restarts > 0 && !last.IsZero() {
		return fmt.Sprintf("%d (%s ago)", restarts, age(last, r.Now))
	}
	return strconv.Itoa(restarts)
}

// podReason sums up a pod in one word. It uses the first of these that the pod has: a container's reason, a scheduling
// gate, a reason of its own, its phase. A deletion overrides them all, except in a finished pod.
//
// Differs: upstream's row also counts sidecars, and the init containers that have finished ("Init:0/2").
func podReason(pod *corev1.Pod) any {
	reason := cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonSchedulingGated {
			reason = condition.Reason
		}
	}
	reason = containersReason(pod, reason)
	if pod.DeletionTimestamp == nil {
		return reason
	}
	if pod.Status.Reason == "NodeLost" {
		return "Unknown"
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return reason
	}
	return "Terminating"
}

// containersReason returns the reason of the first container that has one, or else reason. If that is Completed
// although a ready container runs, it returns Running for a ready pod and NotReady for any other.
func containersReason(pod *corev1.Pod, reason string) string {
	running := false
	for _, status := range slices.Backward(pod.Status.ContainerStatuses) {
		switch {
		case status.State.Waiting != nil && status.State.Waiting.Reason != "":
			reason = status.State.Waiting.Reason
		case status.State.Terminated != nil:
			reason = terminatedReason(status.State.Terminated)
		case status.Ready && status.State.Running != nil:
			running = true
		}
	}
	if reason != "Completed" || !running {
		return reason
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return "Running"
		}
	}
	return "NotReady"
}

func terminatedReason(state *corev1.ContainerStateTerminated) string {
	if state.Signal != 0 {
		return cmp.Or(state.Reason, fmt.Sprintf("Signal:%d", state.Signal))
	}
	return cmp.Or(state.Reason, fmt.Sprintf("ExitCode:%d", state.ExitCode))
}

func podAddress(status *corev1.PodStatus) string {
	if len(status.PodIPs) > 0 {
		return status.PodIPs[0].IP
	}
	return status.PodIP
}

func readinessGates(pod *corev1.Pod) any {
	gates := pod.Spec.ReadinessGates
	if len(gates) == 0 {
		return "<none>"
	}
	hold := 0
	for _, gate := range gates {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == gate.ConditionType && condition.Status == corev1.ConditionTrue {
				hold++
			}
		}
	}
	return fmt.Sprintf("%d/%d", hold, len(gates))
}

// inTemplate returns a cell with one field of each container in the template.
func inTemplate(name string) func(*Row) any {
	return func(r *Row) any {
		containers, _ := r.field("spec.template.spec.containers").([]any)
		return join(containers, func(container any) string {
			text, _ := container.(map[string]any)[name].(string)
			return text
		})
	}
}

// join joins the texts of the elements with commas.
func join[T any](things []T, text func(T) string) string {
	var texts []string
	for _, each := range things {
		texts = append(texts, text(each))
	}
	return strings.Join(texts, ",")
}

func externalAddresses(service *corev1.Service) any {
	var addresses []string
	switch service.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return service.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		for _, ingress := range service.Status.LoadBalancer.Ingress {
			addresses = append(addresses, cmp.Or(ingress.IP, ingress.Hostname))
		}
		slices.Sort(addresses)
		addresses = slices.Compact(addresses)
		if len(addresses)+len(service.Spec.ExternalIPs) == 0 {
			return "<pending>"
		}
	}
	return orNone(strings.Join(append(addresses, service.Spec.ExternalIPs...), ","))
}

func servicePorts(service *corev1.Service) any {
	return orNone(join(service.Spec.Ports, func(port corev1.ServicePort) string {
		if port.NodePort > 0 {
			return fmt.Sprintf("%d:%d/%s", port.Port, port.NodePort, port.Protocol)
		}
		return fmt.Sprintf("%d/%s", port.Port, port.Protocol)
	}))
}

// modes are the access modes of volumes, in upstream's order, with their short names.
var modes = []struct {
	mode corev1.PersistentVolumeAccessMode
	name string
}{{corev1.ReadWriteOnce, "RWO"}, {corev1.ReadOnlyMany, "ROX"}, {corev1.ReadWriteMany, "RWX"},
	{corev1.ReadWriteOncePod, "RWOP"}}

// accessModes returns a cell with the short names of the access modes that are listed at path.
func accessModes(path string) func(*Row) any {
	return func(r *Row) any {
		list, _ := r.field(path).([]any)
		var names []string
		for _, each := range modes {
			if slices.Contains(list, any(string(each.mode))) {
				names = append(names, each.name)
			}
		}
		return strings.Join(names, ",")
	}
}

func volumePhase(r *Row) any {
	if r.Object.(metav1.Object).GetDeletionTimestamp() != nil {
		return "Terminating"
	}
	return show("status.phase", "")(r)
}

func nodeStatus(node *corev1.Node) any {
	status := "Unknown"
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		status = "NotReady"
		if condition.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(node *corev1.Node) any {
	var roles []string
	for label, value := range node.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if label == "kubernetes.io/role" && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	return orNone(strings.Join(roles, ","))
}

func nodeAddress(kind corev1.NodeAddressType) func(*Row) any {
	return by(func(node *corev1.Node) any {
		for _, address := range node.Status.Addresses {
			if address.Type == kind {
				return orNone(address.Address)
			}
		}
		return "<none>"
	})
}

// eventTimes returns the times at which an event was first and last seen, and the number of times.
func eventTimes(event *corev1.Event) (first, last metav1.Time, n int64) {
	first, last, n = event.FirstTimestamp, event.LastTimestamp, int64(event.Count)
	if first.IsZero() {
		first = metav1.NewTime(event.EventTime.Time)
	}
	if event.Series != nil {
		last, n = metav1.NewTime(event.Series.LastObservedTime.Time), int64(event.Series.Count)
	}
	if last.IsZero() {
		last = first
	}
	return first, last, max(n, 1)
}

func eventSource(event *corev1.Event) any {
	source := cmp.Or(event.Source.Component, event.ReportingController)
	if event.Source.Host != "" {
		source += ", " + event.Source.Host
	}
	return source
}

// age returns the time since t in short form: "5m", "3h12m", "<unknown>".
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func orNone(s string) string { return cmp.Or(s, "<none>") }
