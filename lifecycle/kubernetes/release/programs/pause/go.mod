module gcluster.local/pause

go 1.25.0
