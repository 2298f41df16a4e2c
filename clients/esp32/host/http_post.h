// A minimal HTTP client for a local server: one request per connection, no TLS. For tests only.
#pragma once

#include <arpa/inet.h>
#include <cstdlib>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "delivery.h"

inline homeport::Response http_post(int port, const std::string &path, const std::string &api_key, const std::string &body) {
    homeport::Response response;
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    if (connection < 0) {
        return response;
    }
    timeval patience = {30, 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::string request = "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n" +
                          "X-API-Key: " + api_key + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    std::string received;
    if (connect(connection, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
        send(connection, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
        char buffer[4096];
        ssize_t count;
        while ((count = recv(connection, buffer, sizeof buffer, 0)) > 0) {
            received.append(buffer, static_cast<size_t>(count));
        }
    }
    close(connection);
    size_t end = received.find("\r\n\r\n");
    if (received.compare(0, 9, "HTTP/1.1 ") != 0 || end == std::string::npos) {
        return response;
    }
    response.status = atoi(received.c_str() + 9);
    // Without Accept-Encoding and with a body of known length, the response is not chunked.
    response.body = received.substr(end + 4);
    return response;
}
