"""A double of the command `pulumi`: what the real Automation API starts, without a real engine.

It is not Pulumi and says so: in its version, on its output, and in its log. It has the engine's
protocols (ResourceMonitor, Engine, LanguageRuntime, Events; messages from `pulumi.runtime.proto`),
runs the caller's inline program, keeps a checkpoint in Pulumi's shape, and makes things in a cloud
that is invented, or in a moto server. What it can't do it refuses: nothing is passed over.
"""
