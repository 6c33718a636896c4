"""What runs on AWS: ParallelCluster, eksctl, SageMaker HyperPod."""
